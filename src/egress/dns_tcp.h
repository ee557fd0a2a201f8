/*
 * egress/dns_tcp.h - a sandbox's DNS over TCP: connections, and messages with their lengths before
 * them.
 *
 * Questions may follow each other before the first is answered, and answers may come in any order.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"
#include "base/view.h"

struct dns_tcp;
struct dns_tcp_client;
struct err;
struct loop;

struct dns_tcp_events {
	/* Every message is owed one dns_tcp_answer(), now or later. */
	void (*message)(void *arg, struct dns_tcp_client *c, struct view message);
	/* Nothing that is owed to it can be delivered any more. */
	void (*gone)(void *arg, struct dns_tcp_client *c);
};

/* `fd` listens, and stays the caller's. */
osb_must_check int dns_tcp_new(struct loop *l, int fd, const struct dns_tcp_events *events,
			       void *arg, struct dns_tcp **ret, struct err *e);
void dns_tcp_free(struct dns_tcp *t); /* accepts NULL; nobody is told that he is gone */

/* While paused, nothing is read. */
void dns_tcp_pause(struct dns_tcp *t, bool paused);

/* The client stays at least until the loop's next turn.  An empty message: there is none. */
void dns_tcp_answer(struct dns_tcp_client *c, struct view message);
