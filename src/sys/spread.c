/*
 * sys/spread.c - the flag that chattr(1) calls T.
 *
 * ext4 without a journal looks at every inode that was deleted in a group of blocks within the last
 * minutes before it gives out another one there.  Trees that come and go fast must not all lie in
 * the same group.
 */
#include "sys/spread.h"

#include <linux/fs.h>
#include <sys/ioctl.h>

void spread_children(int dir_fd)
{
	int flags;

	if (ioctl(dir_fd, FS_IOC_GETFLAGS, &flags) < 0 || flags & FS_TOPDIR_FL)
		return;
	flags |= FS_TOPDIR_FL;
	(void)ioctl(dir_fd, FS_IOC_SETFLAGS, &flags);
}
