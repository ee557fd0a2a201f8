/*
 * egress/dns_exchange.h - one question to one server: over UDP, and over TCP if the answer is too
 * long for that.
 *
 * Every exchange has a socket and an id of its own, both chosen at random, and hears only the
 * server that it asked.  It waits as long as its owner does.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/macro.h"
#include "base/view.h"
#include "codec/dns_reply.h"
#include "codec/name_servers.h"

struct egress;
struct err;
struct loop_fd;

struct dns_exchange;

/* Called once at most.  `e` is NULL, or says why there is no answer; `kept` is in the buffer that
 * was given, and empty if reply->rcode is a failure.  The exchange has stopped. */
typedef void dns_exchanged_fn(struct dns_exchange *x, const struct dns_reply *reply,
			      struct view kept, const struct err *e);

struct dns_exchange {
	const struct egress *egress;
	const struct name_server *to;
	const struct dns_asker *asker;
	bool edns;
	struct buf *kept; /* for what is kept, shared by many */
	dns_exchanged_fn *fn;
	void *arg;
	/* its own */
	int fd; /* -1 = stopped */
	struct loop_fd *watch;
	uint16_t id;
	bool tcp;
	unsigned strangers; /* datagrams that were no answer */
	struct buf io;	    /* over TCP: what is to be sent, then what has come */
	bool sent;
};

/* The upper part of `x` is filled in and stays.  What fails at once is returned, not called
 * back. */
osb_must_check int dns_exchange_start(struct dns_exchange *x, struct err *e);
bool dns_exchange_active(const struct dns_exchange *x);
void dns_exchange_stop(struct dns_exchange *x);
