/*
 * codec/resolv.h - resolv.conf: which name servers a machine asks.
 *
 * Only what a sandbox can use is kept: IPv4 servers that are not on loopback.  The rest is counted,
 * so that a list that comes out empty can be explained.
 */
#pragma once

#include <stdint.h>

#include "base/view.h"

#define RESOLV_MAX 3 /* resolvers use no more */

struct resolv_conf {
	uint32_t servers[RESOLV_MAX]; /* host byte order */
	unsigned n;
	unsigned loopback_n; /* left out: 127.0.0.0/8, ::1 and the unspecified addresses */
	unsigned other_n;    /* left out: IPv6 and what is no address */
};

void resolv_parse(struct view text, struct resolv_conf *ret);
