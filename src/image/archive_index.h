/*
 * image/archive_index.h - where the files of an image's archive are: of an OCI layout, or of what
 * `docker save` writes.
 *
 * Only names that such an archive can have are remembered, so that the index of anything else stays
 * small.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/view.h"

struct err;

#define ARCHIVE_INDEX_MAX 8192 /* files */

struct archive_file {
	const char *path, *target; /* clean; the latter of links, else NULL */
	uint64_t at, len;	   /* in the decompressed archive */
};

struct archive_index {
	struct arena arena;
	struct archive_file *files;
	size_t n;
	uint64_t plain_bytes; /* of the decompressed archive */
	bool compressed;
};

/* Reads all of `fd` (borrowed).  -EFBIG when it decompresses to more than `max_bytes`. */
osb_must_check int archive_index_read(struct archive_index *x, int fd, uint64_t len,
				      uint64_t max_bytes, struct err *e);
void archive_index_done(struct archive_index *x);

/* By its path, through links; NULL if there is none. */
const struct archive_file *archive_index_find(const struct archive_index *x, struct view path);
