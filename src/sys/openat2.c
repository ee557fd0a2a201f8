/*
 * sys/openat2.c - openat2(2), which glibc does not wrap.
 */
#include "sys/openat2.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel gives up with EAGAIN when something is renamed meanwhile; that is rarely lasting. */
#define ATTEMPTS 32

int openat2_in_root(int root_fd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.mode = flags & (O_CREAT | __O_TMPFILE) ? mode : 0,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd = -1;

	for (int i = 0; i < ATTEMPTS; i++) {
		fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return fd >= 0 ? (int)fd : -errno;
}
