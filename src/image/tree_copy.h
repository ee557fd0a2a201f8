/*
 * image/tree_copy.h - copies what a sandbox wrote into a layer of its own.
 *
 * Contents are shared with the original where the file system can do that; holes stay holes.
 * Owners, modes, times, hard links, whiteouts and the marks of overlayfs are kept.  Sockets are not
 * files that outlive their programs: they become whiteouts.
 */
#pragma once

#include "base/macro.h"
#include "image/layer_apply.h"

struct err;

/*
 * From one directory (open for reading) into an empty one.  `links_fd` is a directory of the same
 * file system as `to_fd`, empty at first, to be thrown away afterwards: it knows inodes that were
 * met before.  All fds are borrowed.  *totals is added to.
 */
osb_must_check int tree_copy(int from_fd, int to_fd, int links_fd, struct layer_totals *totals,
			     struct err *e);
