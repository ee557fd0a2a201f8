/*
 * sys/path_fd.h - changes through an O_PATH fd, which the older calls refuse.
 */
#pragma once

#include <sys/types.h>

#include "base/macro.h"

/*
 * chmod(2) of what `fd` (of any kind) stands for.  0 or -errno; -EBADF when the kernel is too old
 * to do it through an O_PATH fd and /proc does not help.
 */
osb_must_check int path_fd_chmod(int fd, mode_t mode);

/* chown(2); -1 leaves an id alone.  0 or -errno. */
osb_must_check int path_fd_chown(int fd, uid_t uid, gid_t gid);
