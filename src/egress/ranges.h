/*
 * egress/ranges.h - a list of address ranges that can be made free of overlaps: what interval sets
 * of the kernel are filled with.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/nfset.h"

struct net_prefix;

struct ranges {
	struct nfset_element *v;
	size_t n, cap;
};

#define RANGES_NONE ((struct ranges){0})

void ranges_done(struct ranges *r);
void ranges_add(struct ranges *r, const struct net_prefix *p);
void ranges_add_all(struct ranges *r); /* every address of both families */

/* Sorts, and joins what overlaps or touches. */
void ranges_join(struct ranges *r);

/* Everything that `r`, which is joined, does not have. */
void ranges_invert(const struct ranges *r, struct ranges *ret);

/* Does `r`, which is joined, have it? */
bool ranges_have(const struct ranges *r, bool v6, const uint8_t bytes[16]);
