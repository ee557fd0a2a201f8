/*
 * sys/nflog.h - packets that rules of nftables have logged to a group (NFLOG).
 *
 * The kernel demands CAP_NET_ADMIN of whoever opened the socket and of whoever binds it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct err;

struct nflog_packet {
	struct view prefix;  /* of the rule */
	struct view payload; /* begins with the IP header; may be cut */
	int64_t uid;	     /* of the socket's owner; -1 = unknown */
};

/* A socket for the caller's network namespace; it does not block. */
osb_must_check int nflog_open(int *ret, struct err *e);

/* From now on the first `bytes` of every packet logged to `group` arrive at the socket.  Once more
 * is no failure. */
osb_must_check int nflog_bind(int fd, uint16_t group, uint32_t bytes, struct err *e);

/* Calls fn() for each packet of one message.  1, 0 = none there, or -errno; what the kernel had no
 * room for is lost without a word. */
typedef void nflog_fn(void *arg, const struct nflog_packet *p);
osb_must_check int nflog_read(int fd, nflog_fn *fn, void *arg);
