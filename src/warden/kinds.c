/*
 * warden/kinds.c - kinds are compared once, when a create comes; afterwards by their address.
 */
#include "warden/kinds.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/warden_mounts.h"
#include "net/loop.h"

#define FOLLOWED_MAX 4
#define SEEDS_EACH   2u

/* A kind that nobody asked for in this time is not worth its seeds. */
#define IDLE_MS 60000

struct kinds {
	struct list all; /* those that were used last come first */
	struct loop_timer *idle;
	kinds_dropped_fn *dropped;
	void *arg;
};

static struct kind *kind_at(struct list *it)
{
	return list_entry(it, struct kind, link);
}

static void look_for_idle(void *arg)
{
	struct kinds *ks = arg;
	uint64_t now = clock_mono_us();
	bool any = false;

	list_each_safe (it, next, &ks->all) {
		struct kind *k = kind_at(it);

		if (!k->followed)
			continue;
		if (now - k->used_us >= (uint64_t)IDLE_MS * 1000)
			kind_drop(k);
		else
			any = true;
	}
	if (any)
		loop_timer_start(ks->idle, IDLE_MS);
}

struct kinds *kinds_new(struct loop *l, kinds_dropped_fn *dropped, void *arg)
{
	struct kinds *ks = mem_new(struct kinds);

	list_init(&ks->all);
	ks->idle = loop_timer_new(l, look_for_idle, ks);
	ks->dropped = dropped;
	ks->arg = arg;
	return ks;
}

void kinds_free(struct kinds *ks)
{
	if (!ks)
		return;
	list_each_safe (it, next, &ks->all)
		kind_drop(kind_at(it));
	loop_timer_free(ks->idle);
	free(ks);
}

static bool fits(const struct kind *k, const struct warden_mounts *m, enum warden_network network)
{
	return k->network == network && k->host_base == m->host_base &&
	       k->layers_n == m->layers_n && k->volumes_n == 0 && m->volumes_n == 0 &&
	       memcmp(k->layers, m->layers, m->layers_n * sizeof(m->layers[0])) == 0;
}

static struct kind *kind_new(struct kinds *ks, const struct warden_mounts *m,
			     enum warden_network network)
{
	struct kind *k = mem_new(struct kind);

	k->kinds = ks;
	k->refs = 1;
	k->network = network;
	k->host_base = m->host_base;
	k->layers_n = m->layers_n;
	k->volumes_n = m->volumes_n;
	k->layers = mem_new_array(uint64_t, m->layers_n + 1);
	memcpy(k->layers, m->layers, m->layers_n * sizeof(m->layers[0]));
	k->volumes = mem_new_array(struct warden_volume, m->volumes_n + 1);
	memcpy(k->volumes, m->volumes, m->volumes_n * sizeof(m->volumes[0]));
	list_push_back(&ks->all, &k->link);
	return k;
}

static struct kind *find_or_new(struct kinds *ks, const struct warden_mounts *m,
				enum warden_network network)
{
	for (struct list *it = ks->all.next; it != &ks->all; it = it->next)
		if (fits(kind_at(it), m, network))
			return kind_ref(kind_at(it));
	return kind_new(ks, m, network);
}

struct kind *kinds_of(struct kinds *ks, const struct warden_mounts *m, enum warden_network network)
{
	osb_cleanup(mem_freep) struct warden_mounts *without = NULL;
	struct kind *k = find_or_new(ks, m, network);

	if (m->volumes_n == 0)
		return k;
	without = mem_new(struct warden_mounts);
	*without = *m;
	without->volumes_n = 0;
	k->base = find_or_new(ks, without, network);
	return k;
}

struct kind *kinds_host(struct kinds *ks, enum warden_network network)
{
	osb_cleanup(mem_freep) struct warden_mounts *m = mem_new(struct warden_mounts);

	m->host_base = true;
	return kinds_of(ks, m, network);
}

struct kind *kind_ref(struct kind *k)
{
	k->refs++;
	return k;
}

void kind_unref(struct kind *k)
{
	if (!k || --k->refs > 0)
		return;
	list_remove(&k->link);
	kind_unref(k->base);
	free(k->layers);
	free(k->volumes);
	free(k);
}

static void drop_oldest(struct kinds *ks)
{
	unsigned n = 0;

	list_each_safe (it, next, &ks->all)
		if (kind_at(it)->followed && ++n > FOLLOWED_MAX)
			kind_drop(kind_at(it));
}

void kind_used(struct kind *k)
{
	struct kinds *ks = k->kinds;

	if (k->base)
		k = k->base;
	/* Of the host's image alone there always are seeds, but not of policed ones. */
	if (k->layers_n == 0 && k->network != WARDEN_NET_POLICED)
		return;
	k->used_us = clock_mono_us();
	list_remove(&k->link);
	list_push_front(&ks->all, &k->link);
	if (k->followed)
		return;
	k->followed = true;
	kind_ref(k);
	drop_oldest(ks);
	if (!loop_timer_active(ks->idle))
		loop_timer_start(ks->idle, IDLE_MS);
}

void kind_drop(struct kind *k)
{
	if (!k->followed)
		return;
	k->followed = false;
	k->kinds->dropped(k->kinds->arg, k);
	kind_unref(k);
}

static bool has_one_of(const struct kind *k, const uint64_t *layers, size_t n)
{
	for (size_t i = 0; i < k->layers_n; i++)
		for (size_t j = 0; j < n; j++)
			if (k->layers[i] == layers[j])
				return true;
	return n == 0;
}

void kinds_drop_layers(struct kinds *ks, const uint64_t *layers, size_t n)
{
	list_each_safe (it, next, &ks->all)
		if (has_one_of(kind_at(it), layers, n))
			kind_drop(kind_at(it));
}

/* Those in front are served first. */
static unsigned share_of(const struct kinds *ks, const struct kind *of, unsigned limit)
{
	unsigned left = limit / 2, share = 0;

	for (struct list *it = ks->all.next; it != &ks->all; it = it->next) {
		if (!kind_at(it)->followed)
			continue;
		share = MIN(left, SEEDS_EACH);
		if (kind_at(it) == of)
			return share;
		left -= share;
	}
	return limit - limit / 2 + left; /* of the host's */
}

unsigned kind_seeds_wanted(const struct kind *k, unsigned limit)
{
	bool is_host = k->host_base && k->layers_n == 0 && k->volumes_n == 0 &&
		       k->network != WARDEN_NET_POLICED;

	return k->followed || is_host ? share_of(k->kinds, k, limit) : 0;
}

struct kind *kinds_hungry(const struct kinds *ks, unsigned limit)
{
	for (struct list *it = ks->all.next; it != &ks->all; it = it->next) {
		struct kind *k = kind_at(it);

		if (k->followed && k->ready + k->making < share_of(ks, k, limit))
			return k;
	}
	return NULL;
}
