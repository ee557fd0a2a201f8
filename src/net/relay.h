/*
 * net/relay.h - carries bytes between two sockets with splice until both directions have ended.
 *
 * Half-closes are passed on.  Nothing is copied through user space but the bytes that were
 * read before the relay began.  The program must ignore SIGPIPE: splice has no flag against it.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"

struct buf;
struct err;
struct loop;
struct relay;

typedef void relay_done_fn(void *arg);

/* Takes both sockets.  `a_rest` was read from `a` and goes to `b` first, and the reverse; both are
 * taken (may be NULL).  `done` is called once, after which the relay must be freed. idle_ms 0 =
 * none. */
osb_must_check int relay_new(struct loop *l, int a, struct buf *a_rest, int b, struct buf *b_rest,
			     uint64_t idle_ms, relay_done_fn *done, void *arg, struct relay **ret,
			     struct err *e);
void relay_free(struct relay *r); /* accepts NULL; closes both */
