/*
 * base/map.h - a hash map from byte strings to pointers.
 *
 * Keys are copied; values are borrowed.  The hash is keyed with random bytes, so that a
 * client who chooses keys cannot choose collisions.
 */
#pragma once

#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct map;

struct map *map_new(void);
void map_free(struct map *m); /* accepts NULL; the values stay */
DEFINE_CLEANUP(struct map *, map_free)

size_t map_len(const struct map *m);
void *map_get(const struct map *m, struct view key);	    /* NULL if absent */
void *map_put(struct map *m, struct view key, void *value); /* returns the old value or NULL */
void *map_remove(struct map *m, struct view key);	    /* returns the value or NULL */

/* Walks all entries: `size_t pos = 0; while (map_next(m, &pos, &key, &value))`.  No changes
 * meanwhile. */
int map_next(const struct map *m, size_t *pos, struct view *ret_key, void **ret_value);
