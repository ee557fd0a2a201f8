/*
 * net/connect.h - a socket that is on its way to another end.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"

struct connect;
struct err;
struct loop;

struct connect_to {
	const char *ip; /* or NULL */
	uint16_t port;
	const char *unix_path; /* or NULL */
	uint64_t timeout_ms;   /* 0 = none */
	uint32_t mark;	       /* of its packets, for rules that let ours pass; 0 = none */
};

/* Called once: with a connected socket (non-blocking, now the caller's), or -1 and the reason. */
typedef void connect_fn(void *arg, int fd, const struct err *e);

/* Nothing is looked up: `ip` is an address.  What fails at once is returned, not called back. */
osb_must_check int connect_new(struct loop *l, const struct connect_to *to, connect_fn *fn,
			       void *arg, struct connect **ret, struct err *e);
void connect_free(struct connect *c); /* accepts NULL; no callback follows */
