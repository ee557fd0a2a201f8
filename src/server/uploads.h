/*
 * server/uploads.h - archives that clients send, written to images/uploads as they come.
 *
 * Names are our own.  A file is gone when its client leaves before its end; afterwards it belongs
 * to whoever asked for it, until upload_remove().
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"

struct failure;
struct http_exchange;

#define UPLOAD_NAME_MAX 40
#define UPLOADS_MAX	8 /* at a time */

/* `x` is NULL when the client has gone; then there is no file, as with a failure, which is to be
 * answered at once. */
typedef void upload_fn(void *arg, struct http_exchange *x, const char *name,
		       const struct failure *f);

/* Takes the request's body, at most `max_bytes`.  fn is called once, from the loop. */
void upload_receive(struct http_exchange *x, uint64_t max_bytes, upload_fn *fn, void *arg);

/* A fresh name, for a file that a job is going to write. */
void upload_name(char ret[static UPLOAD_NAME_MAX]);
/* Opens one for reading; -errno.  The caller owns the descriptor. */
int upload_open(const char *name);
void upload_remove(const char *name);

/* At start: what an earlier server has left. */
void uploads_sweep(void);
