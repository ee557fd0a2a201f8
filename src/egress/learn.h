/*
 * egress/learn.h - what a sandbox wanted to reach, and the smallest policy that lets it.
 *
 * Bounded: when there is no room for more, the rest is not learned, and learn_is_complete() says
 * so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

struct learn;
struct net_policy;

#define LEARN_MANY 8 /* names of one domain that are worth a wildcard */

struct learn *learn_new(void);
void learn_free(struct learn *l); /* accepts NULL */

void learn_name(struct learn *l, const char *name);		       /* lower case, no last dot */
void learn_address(struct learn *l, bool v6, const uint8_t bytes[16]); /* no name led to it */

uint64_t learn_since_ns(const struct learn *l); /* when it began, wall clock */
size_t learn_names(const struct learn *l);
size_t learn_addresses(const struct learn *l);
bool learn_is_complete(const struct learn *l);

/*
 * Names first, then addresses, each in order; everything else is denied.  `many` names or more that
 * differ in the first label alone become "*.domain" (0 = never), unless strangers may have names in
 * that domain: top-level ones, those like co.uk, and those of well-known hosters.
 */
void learn_suggest(const struct learn *l, size_t many, struct net_policy *ret);
