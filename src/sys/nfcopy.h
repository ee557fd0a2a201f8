/*
 * sys/nfcopy.h - a table that nft has made in one network namespace, made again in others.
 *
 * Running nft costs milliseconds; sending what it sent costs the kernel's part of them.
 */
#pragma once

#include "base/macro.h"

struct err;
struct nfbatch;

enum nfcopy_for {
	NFCOPY_FRESH,	/* there is no such table */
	NFCOPY_REPLACE, /* there may be one, and it goes in the same step */
};

/* In the namespace of the socket: all of the table (family inet), with what its sets hold, as
 * changes that make it elsewhere.  `ret` was initialised. */
osb_must_check int nfcopy_take(int fd, const char *table, enum nfcopy_for what_for,
			       struct nfbatch *ret, struct err *e);
