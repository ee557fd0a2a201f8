/*
 * execd/entry_log.h - the sandbox's log: what the entrypoint and the hooks wrote.
 *
 * A file that the daemon was given open.  It never grows beyond its limit: then its older half is
 * dropped in place.  A file that cannot be written to loses lines; nobody waits for it.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"

struct entry_log;
struct entry_stream;
struct err;
struct loop;

/* Takes `fd` on success. */
osb_must_check int entry_log_new(struct loop *l, int fd, uint64_t max_bytes, struct entry_log **ret,
				 struct err *e);
void entry_log_free(struct entry_log *log); /* accepts NULL; after its streams */

/* One line of the daemon's own.  Accepts a NULL log. */
void entry_log_say(struct entry_log *log, const char *fmt, ...) osb_printf(2, 3);

/* What is written to *ret_fd (the caller's, for a child) is logged under the name `source`. */
osb_must_check int entry_stream_new(struct entry_log *log, const char *source,
				    struct entry_stream **ret, int *ret_fd, struct err *e);

/* Logs what was written until now.  Accepts NULL. */
void entry_stream_drain(struct entry_stream *s);
void entry_stream_free(struct entry_stream *s); /* accepts NULL; logs an unfinished line */
