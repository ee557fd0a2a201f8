/*
 * codec/tar_reader.h - reads tar archives that strangers wrote, as their bytes come.
 *
 * Knows ustar, pax, GNU's long names and all forms of sparse files.  Memory is bounded whatever the
 * archive says.  What a path may be is up to the caller: it is told as the archive has it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/tar.h"
#include "codec/tar_pax.h"

struct err;
struct tar_reader;

struct tar_member {
	enum tar_kind kind;
	struct view path, target; /* without NULs, and followed by one */
	uint32_t mode;		  /* permission bits */
	uint64_t uid, gid;
	uint64_t size; /* of a file, holes included; else 0 */
	int64_t mtime_s;
	uint32_t mtime_ns;
	const struct tar_xattr *xattrs;
	size_t xattrs_n;
	uint64_t at, stored; /* where its content is in the archive */
	bool sparse;
};

/* All return 0, or -errno with a sentence, which ends the reading. */
struct tar_reader_ops {
	int (*member)(void *arg, const struct tar_member *m, struct err *e);
	int (*content)(void *arg, uint64_t at, struct view bytes, struct err *e);
	int (*member_end)(void *arg, struct err *e); /* of a file: all content was told */
};

struct tar_reader *tar_reader_new(const struct tar_reader_ops *ops, void *arg);
void tar_reader_free(struct tar_reader *t); /* accepts NULL */
DEFINE_CLEANUP(struct tar_reader *, tar_reader_free)

/* -EBADMSG: no archive; -ENOTSUP: something in it that we do not know; or what a callback said. */
osb_must_check int tar_reader_feed(struct tar_reader *t, struct view bytes, struct err *e);

/* There are no more bytes: -EBADMSG if there should be. */
osb_must_check int tar_reader_finish(struct tar_reader *t, struct err *e);

/* The mark at the end was read; archives of some programs have none. */
bool tar_reader_ended(const struct tar_reader *t);

/* Content of the current member that was not fed yet and may be passed over instead. */
uint64_t tar_reader_skippable(const struct tar_reader *t);
void tar_reader_skip(struct tar_reader *t, uint64_t n);
