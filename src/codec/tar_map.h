/*
 * codec/tar_map.h - where the pieces of a sparse file belong.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/tar_header.h"

struct err;

#define TAR_MAP_MAX 32768 /* pieces */

struct tar_map {
	struct tar_piece *pieces;
	size_t n, cap;
	bool half; /* the last piece has no length yet */
};

void tar_map_clear(struct tar_map *m); /* keeps the memory */
void tar_map_done(struct tar_map *m);

/* 0 or -EBADMSG. */
osb_must_check int tar_map_add(struct tar_map *m, uint64_t at, uint64_t len);
osb_must_check int tar_map_add_number(struct tar_map *m, uint64_t n, bool is_len);
osb_must_check int tar_map_add_text(struct tar_map *m, struct view numbers, char separator);

/* Pieces follow each other, lie within `real_size` and have `stored` bytes together. */
osb_must_check int tar_map_check(const struct tar_map *m, uint64_t real_size, uint64_t stored,
				 struct err *e);
