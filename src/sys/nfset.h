/*
 * sys/nfset.h - elements of nftables sets: any number of changes, one transaction.
 *
 * The kernel demands CAP_NET_ADMIN of whoever opened the socket and of whoever writes to it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

struct err;
struct nfset_batch;

/* An element of a set of intervals is all from `first` to `last`, both included.  In a set of
 * single addresses (`single`) it is `first` alone; the kernel refuses what is meant for the other
 * sort. */
struct nfset_element {
	bool v6, single;
	uint8_t first[16], last[16]; /* the first four bytes for IPv4 */
	uint32_t timeout_s;	     /* 0 = stays */
};

/* A socket for the caller's network namespace; it does not block. */
osb_must_check int nfset_open(int *ret, struct err *e);

#define NFSET_BATCH_MAX_BYTES (8u << 20)

/* What does not fit into a batch makes its commit fail with -E2BIG. */
struct nfset_batch *nfset_batch_new(const char *table); /* of family inet */
void nfset_batch_free(struct nfset_batch *b);		/* accepts NULL */
DEFINE_CLEANUP(struct nfset_batch *, nfset_batch_free)

/* `set` without its "4" or "6": elements find theirs. Adjacent and overlapping intervals are joined
 * by the caller. */
void nfset_flush(struct nfset_batch *b, const char *set); /* both */
void nfset_add(struct nfset_batch *b, const char *set, const struct nfset_element *v, size_t n);
/* As add, but an element that is there begins its time anew. */
void nfset_renew(struct nfset_batch *b, const char *set, const struct nfset_element *v, size_t n);
/* Elements that are not there are no failure. */
void nfset_remove(struct nfset_batch *b, const char *set, const struct nfset_element *v, size_t n);

/* All of it, or nothing and -errno.  The kernel works while we are in the call: it is done when
 * this returns. */
osb_must_check int nfset_commit(int fd, struct nfset_batch *b, struct err *e);
