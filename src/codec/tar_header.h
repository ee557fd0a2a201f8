/*
 * codec/tar_header.h - one header block of a tar archive, decoded: ustar, GNU, and older ones.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct err;

#define TAR_HEADER_PATH_MAX 256 /* prefix, '/', name */
#define TAR_HEADER_GNU_MAP  4	/* pieces of a sparse file that fit into its header */

/* A piece of a sparse file; what lies between pieces is a hole. */
struct tar_piece {
	uint64_t at, len;
};

struct tar_header {
	char kind; /* the type flag */
	char path[TAR_HEADER_PATH_MAX + 1];
	char target[101];
	uint32_t mode;
	uint64_t uid, gid, size;
	int64_t mtime_s;
	/* Of GNU's old sparse files. */
	struct tar_piece pieces[TAR_HEADER_GNU_MAP];
	size_t pieces_n;
	bool more_pieces; /* in the next block */
	uint64_t real_size;
};

/* Nothing but zeros: the end of an archive. */
bool tar_header_is_empty(const char *block);

/* -EBADMSG with a sentence: wrong sum, or a number that is none. */
osb_must_check int tar_header_parse(const char *block, struct tar_header *ret, struct err *e);

/* Such a next block: at most 21 pieces. */
#define TAR_HEADER_MORE_MAP 21
osb_must_check int tar_header_more_pieces(const char *block, struct tar_piece *ret, size_t *ret_n,
					  bool *ret_more, struct err *e);
