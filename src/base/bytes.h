/*
 * base/bytes.h - big-endian integers in byte strings, and a comparison that does not tell time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/view.h"

static inline void bytes_put_be64(unsigned char *p, uint64_t v)
{
	for (int i = 7; i >= 0; i--, v >>= 8)
		p[i] = (unsigned char)v;
}

static inline uint64_t bytes_get_be64(const unsigned char *p)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return v;
}

/* Equality whose running time depends on the lengths alone: for tokens. */
static inline bool bytes_equal_secret(struct view a, struct view b)
{
	unsigned char diff = 0;

	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++)
		diff |= (unsigned char)(a.p[i] ^ b.p[i]);
	return diff == 0;
}
