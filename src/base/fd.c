/*
 * base/fd.c - closing file descriptors without losing the error being handled.
 */
#include "base/fd.h"

#include <errno.h>
#include <unistd.h>

int fd_close(int fd)
{
	int saved = errno;

	/* Linux frees the number even when close(2) reports EINTR or a late write error. */
	if (fd >= 0)
		(void)close(fd);
	errno = saved;
	return -1;
}

void fd_closep(int *fd)
{
	*fd = fd_close(*fd);
}
