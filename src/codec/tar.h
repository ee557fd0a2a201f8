/*
 * codec/tar.h - writes tar archives (ustar, with pax records for what does not fit).
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;

#define TAR_BLOCK 512

enum tar_kind {
	TAR_FILE = '0',
	TAR_HARDLINK = '1',
	TAR_SYMLINK = '2',
	TAR_CHAR = '3',
	TAR_BLOCKDEV = '4',
	TAR_DIR = '5',
	TAR_FIFO = '6'
};

/* An extended attribute. */
struct tar_xattr {
	struct view name, value;
};

struct tar_entry {
	enum tar_kind kind;
	struct view path;   /* relative; directories get their '/' here */
	struct view target; /* of a link */
	uint32_t mode;	    /* permission bits */
	uint64_t uid, gid;
	uint64_t size;	 /* bytes that follow; 0 unless a file */
	int64_t mtime_s; /* before 1970 becomes 1970 */
	uint32_t major, minor;
	const struct tar_xattr *xattrs;
	size_t xattrs_n;
};

/* The header; the content follows, then tar_put_padding().  0 or -E2BIG. */
osb_must_check int tar_put_header(struct buf *out, const struct tar_entry *t);
osb_must_check int tar_put_padding(struct buf *out, uint64_t size);

/* The two empty blocks at the end. */
osb_must_check int tar_put_end(struct buf *out);
