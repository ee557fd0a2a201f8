/*
 * sys/nfcopy.h - a table that nft has made in one network namespace, made again in others.
 *
 * Running nft costs milliseconds; sending what it sent costs the kernel's part of them.
 */
#pragma once

#include "base/macro.h"

struct err;
struct nfbatch;

/* In the namespace of the socket: all of the table (family inet), with what its sets hold, as
 * changes that make it anew.  `ret` was initialised. */
osb_must_check int nfcopy_take(int fd, const char *table, struct nfbatch *ret, struct err *e);
