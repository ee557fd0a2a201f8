/*
 * sys/openat2.h - paths resolved below a directory that plays "/".
 */
#pragma once

#include <sys/types.h>

#include "base/macro.h"

/*
 * Opens `path` as if `root_fd` were the root directory: absolute symlinks and ".." stay inside,
 * magic links (/proc/self/fd/N) are refused.  O_CLOEXEC is added.  Returns the fd or -errno;
 * -ENOSYS where the kernel or a filter does not know openat2(2).
 */
osb_must_check int openat2_in_root(int root_fd, const char *path, int flags, mode_t mode);

/*
 * The same, but nothing on the way may be a symlink or a mount of its own, and `path` must not lead
 * up: for trees that strangers described.  -ELOOP at a symlink, -EXDEV when it leads out.
 */
osb_must_check int openat2_beneath(int root_fd, const char *path, int flags, mode_t mode);

/* As openat2_in_root(), but nothing on the way may be a mount of its own: -EXDEV. */
osb_must_check int openat2_same_mount(int root_fd, const char *path, int flags);

/* An O_PATH descriptor of the directory `path`.  Symlinks and mounts on the way are followed as
 * long as they stay below `root_fd`; an absolute link never does: -EXDEV. */
osb_must_check int openat2_dir_below(int root_fd, const char *path);
