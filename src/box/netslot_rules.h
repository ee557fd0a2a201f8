/*
 * box/netslot_rules.h - the packet rules around sandboxes, the same for all of them.
 *
 * Interfaces of sandboxes are known by the beginning of their names, so no rule is ever added for a
 * single sandbox.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"

struct buf;
struct err;
struct resolv_conf;

struct netslot_plan {
	char tag[9];	     /* hexadecimal digits: which server's sandboxes */
	char prefix[11];     /* of interface names: "ob" and the tag */
	uint32_t network;    /* host byte order */
	unsigned prefix_len; /* of the subnet */
	uint32_t slots;	     /* how many fit */
};

/* `subnet`: "10.213.0.0/16", from /8 to /28. */
osb_must_check int netslot_plan_parse(const char *tag, const char *subnet, struct netslot_plan *ret,
				      struct err *e);

/* The whole table as text for nft.  `strict` asks the routing table about addresses (needs
 * nft_fib).
 */
osb_must_check int netslot_rules_format(const struct netslot_plan *p, const struct resolv_conf *dns,
					bool strict, struct buf *ret);

/* Puts the table in place of an older one in one step, and opens other firewalls for it. */
osb_must_check int netslot_rules_load(const struct netslot_plan *p, const struct resolv_conf *dns,
				      struct err *e);
void netslot_rules_remove(const struct netslot_plan *p);
