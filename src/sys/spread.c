/*
 * sys/spread.c - the flag that chattr(1) calls T, known to ext4 and its elders.
 */
#include "sys/spread.h"

#include <linux/fs.h>
#include <sys/ioctl.h>

bool spread_children(int dir_fd)
{
	int flags;

	if (ioctl(dir_fd, FS_IOC_GETFLAGS, &flags) < 0)
		return false;
	flags |= FS_TOPDIR_FL;
	return ioctl(dir_fd, FS_IOC_SETFLAGS, &flags) == 0;
}
