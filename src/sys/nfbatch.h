/*
 * sys/nfbatch.h - a transaction of nftables: changes of family inet in one buffer, sent at once.
 *
 * What does not fit is remembered and makes the commit fail, so that nothing else has to be
 * checked. The kernel demands CAP_NET_ADMIN of whoever opened the socket and of whoever writes to
 * it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/macro.h"

struct err;

struct nfbatch {
	struct buf bytes;
	uint32_t seq;
	size_t last; /* where the last change begins; 0: there is none */
	bool finished;
	int failed;
};

/* A socket for the caller's network namespace; it does not block. */
osb_must_check int nfbatch_open(int *ret, struct err *e);

void nfbatch_init(struct nfbatch *b, size_t max_bytes);
void nfbatch_done(struct nfbatch *b);

/* A change: enum nf_tables_msg_types and flags of netlink; its attributes follow. */
size_t nfbatch_begin(struct nfbatch *b, unsigned type, unsigned flags);
void nfbatch_end(struct nfbatch *b, size_t begun);

void nfbatch_put(struct nfbatch *b, unsigned type, const void *value, size_t size);
void nfbatch_put_text(struct nfbatch *b, unsigned type, const char *text);
void nfbatch_put_u32(struct nfbatch *b, unsigned type, uint32_t value);
size_t nfbatch_nest(struct nfbatch *b, unsigned type);
void nfbatch_unnest(struct nfbatch *b, size_t nested);

/* All of it, or nothing and -errno.  The kernel works while we are in the call: it is done when
 * this returns.  May be called again, for another namespace say. */
osb_must_check int nfbatch_commit(int fd, struct nfbatch *b, const char *what, struct err *e);
