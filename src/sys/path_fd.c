/*
 * sys/path_fd.c - fchmodat2(2) where there is one (Linux 6.6), else the way through /proc.
 */
#include "sys/path_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* the same number on every architecture */
#endif

int path_fd_chmod(int fd, mode_t mode)
{
	osb_cleanup(fd_closep) int dir_fd = -1;
	char link[32];

	if (syscall(SYS_fchmodat2, fd, "", mode, AT_EMPTY_PATH) == 0)
		return 0;
	if (errno != ENOSYS && errno != EPERM)
		return -errno;

	/* EPERM may be a filter's way to say ENOSYS; a real one comes again. */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (chmod(link, mode) == 0)
		return 0;
	if (errno != ENOENT && errno != EACCES)
		return -errno;

	/*
	 * No /proc, or not for us (a process that is not dumpable may not look into its own).
	 * Directories can be opened again, and ordinary fds need no detour.
	 */
	dir_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fchmod(dir_fd >= 0 ? dir_fd : fd, mode) == 0 ? 0 : -errno;
}

int path_fd_chown(int fd, uid_t uid, gid_t gid)
{
	return fchownat(fd, "", uid, gid, AT_EMPTY_PATH) == 0 ? 0 : -errno;
}
