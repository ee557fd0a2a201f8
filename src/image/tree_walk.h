/*
 * image/tree_walk.h - a tree of directories, entry by entry, from fds alone; links are never
 * followed.
 *
 * The caller decides which directories are entered.  Memory and open files are bounded by the
 * longest path that there may be.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct err;
struct tree_walk;

#define TREE_PATH_MAX 4095 /* of a path below the top */

struct tree_entry {
	int dir_fd;	  /* of the directory that holds it; of itself when it is left */
	const char *name; /* in it; "." when it is left */
	struct view path; /* below the top, followed by a NUL; "" is the top itself */
	size_t depth;	  /* directories that are entered and not left yet; the top is the first */
	bool leaving;	  /* a directory that was entered: all in it was told */
};

/* `fd` is taken: open for reading, closed on failure too.  Its content is told first. */
osb_must_check int tree_walk_open(int fd, struct tree_walk **ret, struct err *e);
void tree_walk_close(struct tree_walk *w); /* accepts NULL */
DEFINE_CLEANUP(struct tree_walk *, tree_walk_close)

/* 1 and an entry, valid until the next call; 0 at the end; -errno with a sentence. */
osb_must_check int tree_walk_next(struct tree_walk *w, struct tree_entry *ret, struct err *e);

/* The entry that was told last, a directory, comes next.  -ENAMETOOLONG when paths would be too
 * long. */
osb_must_check int tree_walk_enter(struct tree_walk *w, struct err *e);
