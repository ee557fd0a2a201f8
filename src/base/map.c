/*
 * base/map.c - a hash map from byte strings to pointers.
 *
 * Open addressing with linear probing, at most three quarters full.  Removing shifts the
 * entries behind the hole back, so there are no tombstones and lookups stay short.  The hash
 * is SipHash-2-4 with a key of its own per map.
 */
#include "base/map.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rand.h"

#define FIRST_CAP 16

struct slot {
	char *key; /* NULL in an empty slot */
	size_t key_len;
	uint64_t hash;
	void *value;
};

struct map {
	struct slot *slots;
	size_t len;
	size_t cap; /* a power of two, or 0 */
	uint64_t key[2];
};

static uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static void sip_rounds(uint64_t v[4], int n)
{
	while (n-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static uint64_t hash_of(const struct map *m, struct view key)
{
	uint64_t v[4] = {
		m->key[0] ^ 0x736f6d6570736575u,
		m->key[1] ^ 0x646f72616e646f6du,
		m->key[0] ^ 0x6c7967656e657261u,
		m->key[1] ^ 0x7465646279746573u,
	};
	uint64_t last = (uint64_t)key.len << 56, word;
	size_t at = 0;

	for (; key.len - at >= sizeof(word); at += sizeof(word)) {
		memcpy(&word, key.p + at, sizeof(word));
		v[3] ^= word;
		sip_rounds(v, 2);
		v[0] ^= word;
	}
	for (int shift = 0; at < key.len; at++, shift += 8)
		last |= (uint64_t)(unsigned char)key.p[at] << shift;
	v[3] ^= last;
	sip_rounds(v, 2);
	v[0] ^= last;
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

struct map *map_new(void)
{
	struct map *m = mem_new(struct map);

	rand_bytes(m->key, sizeof(m->key));
	return m;
}

void map_free(struct map *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->cap; i++)
		free(m->slots[i].key);
	free(m->slots);
	free(m);
}

size_t map_len(const struct map *m)
{
	return m->len;
}

/* The slot that holds `key`, or the empty one where it would go.  Needs m->cap > 0. */
static struct slot *find(const struct map *m, struct view key, uint64_t hash)
{
	for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
		struct slot *s = &m->slots[i];

		if (!s->key)
			return s;
		if (s->hash == hash && view_eq(view_mem(s->key, s->key_len), key))
			return s;
	}
}

static void resize(struct map *m, size_t cap)
{
	struct slot *old = m->slots;
	size_t old_cap = m->cap;

	m->slots = mem_new_array(struct slot, cap);
	m->cap = cap;
	for (size_t i = 0; i < old_cap; i++)
		if (old[i].key)
			*find(m, view_mem(old[i].key, old[i].key_len), old[i].hash) = old[i];
	free(old);
}

void *map_get(const struct map *m, struct view key)
{
	return m->len > 0 ? find(m, key, hash_of(m, key))->value : NULL;
}

void *map_put(struct map *m, struct view key, void *value)
{
	uint64_t hash = hash_of(m, key);
	struct slot *s;
	void *old;

	if (m->len + 1 > m->cap / 4 * 3)
		resize(m, m->cap ? 2 * m->cap : FIRST_CAP);
	s = find(m, key, hash);
	old = s->value;
	if (!s->key) {
		s->key = mem_strndup(key.p, key.len);
		s->key_len = key.len;
		s->hash = hash;
		m->len++;
	}
	s->value = value;
	return old;
}

/* Moves later entries of the probe run back into the hole, until none is out of place. */
static void close_hole(struct map *m, size_t hole)
{
	size_t mask = m->cap - 1;

	for (size_t i = (hole + 1) & mask; m->slots[i].key; i = (i + 1) & mask) {
		size_t home = m->slots[i].hash & mask;

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		m->slots[hole] = m->slots[i];
		hole = i;
	}
	m->slots[hole] = (struct slot){0};
}

void *map_remove(struct map *m, struct view key)
{
	struct slot *s;
	void *value;

	if (m->len == 0)
		return NULL;
	s = find(m, key, hash_of(m, key));
	if (!s->key)
		return NULL;
	value = s->value;
	free(s->key);
	close_hole(m, (size_t)(s - m->slots));
	m->len--;
	if (m->cap > FIRST_CAP && m->len < m->cap / 8)
		resize(m, m->cap / 2);
	return value;
}

int map_next(const struct map *m, size_t *pos, struct view *ret_key, void **ret_value)
{
	while (*pos < m->cap) {
		const struct slot *s = &m->slots[(*pos)++];

		if (!s->key)
			continue;
		if (ret_key)
			*ret_key = view_mem(s->key, s->key_len);
		if (ret_value)
			*ret_value = s->value;
		return 1;
	}
	return 0;
}
