/*
 * image/layer_store.h - layers by number: made in tmp/N, complete in layers/N.
 *
 * A layer appears by one rename after everything in it is on the disk.  Whatever happens before
 * leaves nothing but tmp/N, which the next attempt or layer_store_clean() removes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "image/layer_apply.h"

struct err;

struct layer_store {
	int layers_fd, tmp_fd; /* of one file system */
};

/* Opens layers and tmp below `images_fd`, making them if they are missing. */
osb_must_check int layer_store_open(struct layer_store *s, int images_fd, struct err *e);
void layer_store_close(struct layer_store *s);

/* It is complete. */
bool layer_store_has(const struct layer_store *s, uint64_t number);

/* An empty tmp/N, whatever was there; the caller owns *ret_fd. */
osb_must_check int layer_store_begin(const struct layer_store *s, uint64_t number, int *ret_fd,
				     struct err *e);

/* Makes an empty directory in it. */
osb_must_check int layer_store_make_dir(int layer_fd, const char *name, int *ret_fd, struct err *e);

/* To the disk, then into its place. */
osb_must_check int layer_store_publish(const struct layer_store *s, uint64_t number, int layer_fd,
				       struct err *e);

/* Throws tmp/N away. */
void layer_store_abandon(const struct layer_store *s, uint64_t number);

/* Out of its place at once, then away; and what is left of one whose making was killed. */
osb_must_check int layer_store_remove(const struct layer_store *s, uint64_t number, struct err *e);

/*
 * Removes layers below number `next` that are not among `keep` (sorted; NULL keeps all), what is
 * left of their making, and files in tmp that nobody has locked.  Others may be at work meanwhile,
 * with numbers from `next` on.
 */
osb_must_check int layer_store_clean(const struct layer_store *s, const uint64_t *keep, size_t n,
				     uint64_t next, struct err *e);

/* Counts a complete layer's files. */
osb_must_check int layer_store_totals(const struct layer_store *s, uint64_t number,
				      struct layer_totals *ret, struct err *e);

/* The same for any tree; `dir_fd` (borrowed) is open for reading. */
osb_must_check int layer_store_count(int dir_fd, struct layer_totals *ret, struct err *e);
