/*
 * codec/tar_pax.h - the records of a pax header: what ustar has no room for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/tar.h"

struct err;
struct tar_map;

#define TAR_XATTRS_MAX	     64
#define TAR_XATTRS_MAX_BYTES 65536 /* names and values of one file */

/* Views point into the parsed text. */
struct tar_pax {
	struct view path, target; /* empty: not said */
	bool has_size, has_uid, has_gid, has_mtime;
	uint64_t size, uid, gid;
	int64_t mtime_s;
	uint32_t mtime_ns;
	struct tar_xattr xattrs[TAR_XATTRS_MAX];
	size_t xattrs_n;

	/* GNU's sparse files. */
	struct view sparse_path;
	bool is_sparse, map_in_content;
	uint64_t real_size;
};

/* -EBADMSG with a sentence; pieces of sparse files are added to `map`. */
osb_must_check int tar_pax_parse(struct view text, struct tar_pax *ret, struct tar_map *map,
				 struct err *e);
