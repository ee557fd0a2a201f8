/*
 * egress/dns_cache.h - answers of upstream servers, kept for as long as they say and for all
 * sandboxes: who may ask is decided before anything is looked up here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct dns_cache;

/* What was used longest ago goes when it holds more than `max_bytes`. */
struct dns_cache *dns_cache_new(size_t max_bytes);
void dns_cache_free(struct dns_cache *c); /* accepts NULL */

/* `key` is an asker's (codec/dns_reply.h).  Replaces what was there. */
void dns_cache_put(struct dns_cache *c, struct view key, struct view answer, uint32_t ttl_s,
		   uint64_t now_us);

/* The answer, which stays the cache's until the next put, and its age. */
bool dns_cache_get(struct dns_cache *c, struct view key, uint64_t now_us, struct view *ret,
		   uint32_t *ret_age_s);

/* Bytes that it holds. */
size_t dns_cache_bytes(const struct dns_cache *c);
