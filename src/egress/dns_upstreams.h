/*
 * egress/dns_upstreams.h - the servers that are asked on behalf of all sandboxes.
 *
 * Equal questions are asked once.  A server that does not answer in time is helped by the next one
 * while it is still listened to; one that fails is passed over until a probe says that it is back.
 */
#pragma once

#include <stdint.h>

#include "base/list.h"
#include "base/macro.h"
#include "base/view.h"

struct dns_asker;
struct dns_upstreams;
struct egress;
struct err;

/* Somebody who waits for an answer; stays the caller's. */
struct dns_wait;
/* `kept` (codec/dns_reply.h) is valid during the call; empty: nobody could say. */
typedef void dns_answered_fn(struct dns_wait *w, struct view kept);
struct dns_wait {
	struct list link;
	dns_answered_fn *fn;
};

/* From egress->settings, or else from resolv.conf, or else a public one.  Answers go to
 * egress->cache. */
osb_must_check int dns_upstreams_new(struct egress *g, struct dns_upstreams **ret, struct err *e);
void dns_upstreams_free(struct dns_upstreams *u); /* accepts NULL; nobody may wait */

/* While anybody holds them, they are probed. */
void dns_upstreams_hold(struct dns_upstreams *u);
void dns_upstreams_release(struct dns_upstreams *u);

/* w->fn is called once, after this returned 0, unless the wait is cancelled.  `timeout_s` after
 * somebody was the first to ask this, nobody could say.  -EBUSY: too much is being asked. */
osb_must_check int dns_upstreams_ask(struct dns_upstreams *u, const struct dns_asker *a,
				     uint32_t timeout_s, struct dns_wait *w);
void dns_wait_cancel(struct dns_wait *w);
