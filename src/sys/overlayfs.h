/*
 * sys/overlayfs.h - a file system of layers with a writable directory on top.
 */
#pragma once

#include <stddef.h>

#include "base/macro.h"

struct err;

/* Paths may be relative to the current directory; none has ':', ',' or a backslash in it. */
struct overlayfs {
	const char *const *lowers; /* highest first; at most 500 */
	size_t lowers_n;
	const char *upper, *work;
};

/* Mounts it on the directory `target_fd`, nosuid and nodev, and not for longer than the machine
 * runs.  Marks that move directories or split files' content from their names are neither made nor
 * followed: a layer holds files, whiteouts and opaque directories.  -E2BIG where the kernel takes
 * no list of that length. */
osb_must_check int overlayfs_mount(const struct overlayfs *o, int target_fd, struct err *e);

/* The same in the way that kernels before 6.7 know, of which it is part: all in one page of text.
 */
osb_must_check int overlayfs_mount_by_text(const struct overlayfs *o, int target_fd, struct err *e);
