/*
 * sdk/wire.h - a connection to a server, plain or encrypted, with limits on waiting.
 *
 * Calls block, but never beyond a limit: a point in time, or a caller who has changed his mind.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"
#include "base/view.h"

struct address;
struct err;
struct osb_cancel;
struct wire;
struct wire_trust; /* whom to believe: a set of authorities */

struct wire_limit {
	uint64_t deadline_us;	   /* monotonic; 0 = none */
	struct osb_cancel *cancel; /* or NULL */
};

osb_must_check int wire_trust_new(const char *ca_file, struct wire_trust **ret, struct err *e);
void wire_trust_free(struct wire_trust *t); /* accepts NULL */

/* -ETIMEDOUT and -ECANCELED are the limit's; -EKEYREJECTED: the certificate is not good. */
osb_must_check int wire_open(const struct address *a, struct wire_trust *trust,
			     const struct wire_limit *limit, struct wire **ret, struct err *e);
void wire_close(struct wire *w); /* accepts NULL */

/* All of `bytes`. */
osb_must_check int wire_write(struct wire *w, struct view bytes, const struct wire_limit *limit,
			      struct err *e);

/* At least one byte; 0 = the other side has ended. */
osb_must_check ssize_t wire_read(struct wire *w, void *p, size_t n, const struct wire_limit *limit,
				 struct err *e);

/* Nothing more is written; reading goes on. */
osb_must_check int wire_end(struct wire *w, struct err *e);

/* Bytes have come that a poll(2) on its descriptor does not show. */
bool wire_buffered(const struct wire *w);

/* Has the other side closed it, or said something that nobody asked for? */
bool wire_is_stale(struct wire *w);

/* `n` bytes of a file, by the kernel's own hand if the connection is plain: how many it took, 0 at
 * the end of the file. */
osb_must_check ssize_t wire_send_file(struct wire *w, int fd, size_t n,
				      const struct wire_limit *limit, struct err *e);

/* For poll(2): a terminal waits for the keyboard, too. */
int wire_fd(const struct wire *w);

/* Until then, or until the call is cancelled. */
void wire_sleep(uint64_t ms, struct osb_cancel *cancel);
