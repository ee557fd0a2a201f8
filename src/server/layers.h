/*
 * server/layers.h - the layers on disk: how many use each, and the end of those that nobody uses.
 *
 * Images, snapshots and sandboxes each count as users of their layers.  A layer without users is
 * removed a moment later, unless somebody holds all of them: a pull does until its image is
 * complete, so that what it has got already stays.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct err;
struct jobs;
struct layers;
struct loop;
struct runtime;
struct store;
struct store_layer;

struct layer {
	uint64_t number; /* below images/layers */
	char *diff_id;	 /* or NULL */
	uint64_t bytes, files;
	int64_t created_us;
	bool host_usr;
	unsigned users;
};

/* Loads what the store knows.  Everything is held until the first layers_release(). */
osb_must_check int layers_new(struct loop *l, struct store *store, struct jobs *jobs,
			      struct layers **ret, struct err *e);
void layers_free(struct layers *l);			      /* accepts NULL */
void layers_set_runtime(struct layers *l, struct runtime *r); /* borrowed; NULL: there is none */

const struct layer *layers_get(const struct layers *l, uint64_t number); /* NULL if unknown */
const struct layer *layers_find(const struct layers *l, struct view diff_id);

/* A number for a layer that is going to be made. */
osb_must_check int layers_take_number(struct layers *l, uint64_t *ret, struct err *e);

/* It is on disk now: records it.  It has no users yet; whoever adds it counts itself at once,
 * or holds all. */
osb_must_check int layers_add(struct layers *l, const struct store_layer *made, struct err *e);

/* Files of layers that never got a record. */
void layers_discard(struct layers *l, const uint64_t *numbers, size_t n);

void layers_use(struct layers *l, const uint64_t *numbers, size_t n);
void layers_leave(struct layers *l, const uint64_t *numbers, size_t n);

/* While anybody holds, none that layers_find() finds is removed. */
void layers_hold(struct layers *l);
void layers_release(struct layers *l);

uint64_t layers_image_bytes(const struct layers *l); /* of all but captures of sandboxes */

/* Walks all: `size_t pos = 0; while ((x = layers_next(l, &pos)))`.  No changes meanwhile. */
const struct layer *layers_next(const struct layers *l, size_t *pos);
