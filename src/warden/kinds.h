/*
 * warden/kinds.h - what boxes are made of: layers, volumes, network.
 *
 * Two creates that ask for the same have the same kind, so that a seed of it fits both; what has
 * volumes is of a kind of its own.  Kinds that are asked for again and again are followed: seeds of
 * them are kept, too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/macro.h"
#include "codec/warden_msg.h"

struct kinds;
struct loop;
struct warden_mounts;
struct warden_volume;

struct kind {
	struct list link; /* in its kinds */
	struct kinds *kinds;
	struct kind *base; /* the same without volumes; NULL: it has none */
	unsigned refs;
	enum warden_network network;
	bool host_base;
	size_t layers_n, volumes_n;
	uint64_t *layers;
	struct warden_volume *volumes;
	unsigned waiting;	/* creates */
	unsigned making, ready; /* seeds */
	bool followed;
	uint64_t used_us; /* when a create of it came last */
};

/* `dropped` is called with a kind that is followed no more: its seeds are to go.  It may come from
 * any call below that takes a kind. */
typedef void kinds_dropped_fn(void *arg, struct kind *k);

struct kinds *kinds_new(struct loop *l, kinds_dropped_fn *dropped, void *arg);
void kinds_free(struct kinds *ks); /* accepts NULL; nobody has a kind any more */

/* The caller's to let go of. */
struct kind *kinds_host(struct kinds *ks, enum warden_network network);
struct kind *kinds_of(struct kinds *ks, const struct warden_mounts *m, enum warden_network network);
struct kind *kind_ref(struct kind *k);
void kind_unref(struct kind *k); /* accepts NULL */

/* A create of it was answered. */
void kind_used(struct kind *k);

/* Not to be followed until it is used again; none of these numbers = all that have layers. */
void kind_drop(struct kind *k);
void kinds_drop_layers(struct kinds *ks, const uint64_t *layers, size_t n);

/* How many seeds of it there should be, `limit` being the number for all kinds together: those that
 * were used last get two each, all of them half of it; the host's has the rest. */
unsigned kind_seeds_wanted(const struct kind *k, unsigned limit);

/* One that is followed and lacks a seed; borrowed, NULL: none. */
struct kind *kinds_hungry(const struct kinds *ks, unsigned limit);
