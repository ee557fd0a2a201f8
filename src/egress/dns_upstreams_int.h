/*
 * egress/dns_upstreams_int.h - what the servers (dns_upstreams.c) and the questions to them
 * (dns_ask.c) know of each other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "codec/dns_reply.h"
#include "codec/name_servers.h"
#include "egress/dns_exchange.h"
#include "egress/dns_upstreams.h"

struct egress;
struct loop_timer;
struct map;

struct upstream {
	struct name_server address;
	unsigned misses;
	uint64_t answered_us; /* when it last did */
	struct dns_exchange probe;
};

struct dns_upstreams {
	struct egress *egress;
	struct upstream v[NAME_SERVERS_MAX];
	size_t n;
	uint64_t read_us;  /* when resolv.conf was last read; 0 = the operator has named them */
	struct map *asks;  /* key -> struct dns_ask */
	struct list spare; /* struct dns_ask: those that are not in use */
	size_t asks_n;	   /* of both kinds */
	struct buf kept;
	unsigned holders;
	struct loop_timer *probes;
	struct dns_asker probe;
};

/* ---- how a server does ---- */

bool upstream_is_well(const struct upstream *s);
void upstream_missed(struct upstream *s);
/* It kept a question waiting: that may be the fault of the name's own servers. */
void upstream_silent(struct upstream *s, uint64_t now_us);
void upstream_answered(struct upstream *s, uint64_t now_us);

/* Nobody answers: perhaps the host asks others by now. */
void dns_upstreams_look_again(struct dns_upstreams *u);

/* ---- dns_ask.c ---- */

void dns_asks_free(struct dns_upstreams *u);
