/*
 * execd/file_walk.h - a tree of directories, entry by entry, from fds alone; links are never
 * followed.
 *
 * Entries of a directory come in the order of their bytes; a directory comes before what is in
 * it.  Trees may be deeper than fds or PATH_MAX allow: only the lowest directories stay open, and
 * the way back up is checked by device and inode.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct err;
struct file_walk;

enum file_walk_flags {
	/* Tell about each directory again when all in it was told. */
	FILE_WALK_LEAVE = 1,
	/* What was told is removed by the caller: any order, and a directory is read anew until it
	 * is empty. */
	FILE_WALK_REMOVING = 2,
};

enum file_walk_kind { FILE_WALK_ENTRY, FILE_WALK_DIR, FILE_WALK_DIR_END };

struct file_walk_entry {
	enum file_walk_kind kind;
	int dir_fd;	  /* of the directory that holds it, borrowed until the next call */
	const char *name; /* in it */
	struct view path; /* the whole path, in bytes; borrowed until the next call */
	bool may_match;	  /* a regular file or a symlink, as far as the directory knows */
};

/*
 * Walks below the directory `fd` (taken, open for reading; closed on failure too), whose path is
 * `path`; entries are told down to `max_depth` levels (1 = the directory's own).
 */
osb_must_check int file_walk_open(int fd, const char *path, unsigned max_depth, unsigned flags,
				  struct file_walk **ret, struct err *e);
void file_walk_close(struct file_walk *w); /* accepts NULL */

/*
 * 1 and an entry; 0 at the end; -EAGAIN when there is nothing to tell yet (call again, after
 * others had their turn); -errno with a sentence.
 */
osb_must_check int file_walk_next(struct file_walk *w, struct file_walk_entry *ret, struct err *e);
