/*
 * sys/openat2.c - openat2(2), which glibc does not wrap.
 */
#include "sys/openat2.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel gives up with EAGAIN when something is renamed meanwhile; that is rarely lasting. */
#define ATTEMPTS 32

static int open_with(int root_fd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.mode = flags & (O_CREAT | __O_TMPFILE) ? mode : 0,
		.resolve = resolve,
	};
	long fd = -1;

	for (int i = 0; i < ATTEMPTS; i++) {
		fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return fd >= 0 ? (int)fd : -errno;
}

int openat2_in_root(int root_fd, const char *path, int flags, mode_t mode)
{
	return open_with(root_fd, path, flags, mode, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

int openat2_beneath(int root_fd, const char *path, int flags, mode_t mode)
{
	return open_with(root_fd, path, flags, mode,
			 RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
				 RESOLVE_NO_XDEV);
}

int openat2_same_mount(int root_fd, const char *path, int flags)
{
	return open_with(root_fd, path, flags, 0,
			 RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
}

int openat2_dir_below(int root_fd, const char *path)
{
	return open_with(root_fd, path, O_PATH | O_DIRECTORY, 0,
			 RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}
