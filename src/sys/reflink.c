/*
 * sys/reflink.c - FICLONE.
 */
#include "sys/reflink.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

_Static_assert(FICLONE == REFLINK_IOCTL, "the number of the call");

int reflink(int from_fd, int to_fd)
{
	return ioctl(to_fd, FICLONE, from_fd) < 0 ? -errno : 0;
}
