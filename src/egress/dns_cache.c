/*
 * egress/dns_cache.c - a map of entries that are also a list, newest use first.
 */
#include "egress/dns_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"

#define SECOND_US  (1000 * 1000ull)
#define ANSWER_MAX 16384 /* bytes; what is longer is asked for again */
/* What an entry costs beside its bytes: its links, and the map's. */
#define OVERHEAD (sizeof(struct entry) + 64)

struct entry {
	struct list link;
	uint64_t from_us, until_us;
	struct view key, answer; /* both behind it */
};

struct dns_cache {
	struct map *map;
	struct list entries; /* used last first */
	size_t bytes, max;
};

struct dns_cache *dns_cache_new(size_t max_bytes)
{
	struct dns_cache *c = mem_new(struct dns_cache);

	c->map = map_new();
	c->max = max_bytes;
	list_init(&c->entries);
	return c;
}

static size_t cost(const struct entry *x)
{
	/* The map has a copy of the key. */
	return OVERHEAD + 2 * x->key.len + x->answer.len;
}

static void drop(struct dns_cache *c, struct entry *x)
{
	c->bytes -= cost(x);
	list_remove(&x->link);
	map_remove(c->map, x->key);
	free(x);
}

void dns_cache_free(struct dns_cache *c)
{
	if (!c)
		return;
	list_each_safe (it, next, &c->entries)
		drop(c, list_entry(it, struct entry, link));
	map_free(c->map);
	free(c);
}

void dns_cache_put(struct dns_cache *c, struct view key, struct view answer, uint32_t ttl_s,
		   uint64_t now_us)
{
	struct entry *x = map_get(c->map, key);
	char *bytes;

	if (x)
		drop(c, x);
	if (ttl_s == 0 || answer.len > ANSWER_MAX)
		return;
	x = mem_alloc(sizeof(*x) + key.len + answer.len);
	bytes = (char *)(x + 1);
	memcpy(bytes, key.p, key.len);
	memcpy(bytes + key.len, answer.p, answer.len);
	x->key = view_mem(bytes, key.len);
	x->answer = view_mem(bytes + key.len, answer.len);
	x->from_us = now_us;
	x->until_us = now_us + ttl_s * SECOND_US;
	list_push_front(&c->entries, &x->link);
	map_put(c->map, x->key, x);
	c->bytes += cost(x);
	while (c->bytes > c->max)
		drop(c, list_entry(c->entries.prev, struct entry, link));
}

bool dns_cache_get(struct dns_cache *c, struct view key, uint64_t now_us, struct view *ret,
		   uint32_t *ret_age_s)
{
	struct entry *x = map_get(c->map, key);

	if (!x)
		return false;
	if (x->until_us <= now_us) {
		drop(c, x);
		return false;
	}
	list_remove(&x->link);
	list_push_front(&c->entries, &x->link);
	*ret = x->answer;
	*ret_age_s = (uint32_t)((now_us - x->from_us) / SECOND_US);
	return true;
}

size_t dns_cache_bytes(const struct dns_cache *c)
{
	return c->bytes;
}
