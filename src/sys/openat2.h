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
