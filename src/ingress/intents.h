/*
 * ingress/intents.h - tells a list in Redis which sandboxes are used, so that somebody renews them.
 *
 * Nothing waits for it: what Redis does not take in time is dropped, and counted.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/redis.h"

struct err;
struct intents;
struct loop;

struct intents_to {
	const struct redis_url *redis;
	const char *ip; /* of its host */
	const char *queue_key;
	uint32_t queue_max_len;	 /* 0 = no limit */
	uint32_t min_interval_s; /* between two of one sandbox; 0 = none */
};

/* What it is given is borrowed and must live longer. */
struct intents *intents_new(struct loop *l, const struct intents_to *to);
void intents_free(struct intents *i); /* accepts NULL */

/* `uri` is the path and query that the sandbox is asked for. */
void intents_publish(struct intents *i, struct view id, uint16_t port, struct view uri);
