/*
 * sys/mounttree.c - open_tree, mount_setattr and move_mount with AT_RECURSIVE.
 */
#include "sys/mounttree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "sys/mountfd.h"

/* glibc's <sys/mount.h> and <linux/mount.h> cannot be included together. */
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
#define PROPAGATION_PRIVATE (1u << 18)

static int set_attributes(int fd, const char *path, struct mount_attr *a, struct err *e)
{
	unsigned flags = AT_RECURSIVE | (*path ? 0 : AT_EMPTY_PATH);

	if (syscall(SYS_mount_setattr, fd, path, flags, a, sizeof(*a)) < 0)
		return err_set(e, -errno, "mount_setattr '%s': %m", path);
	return 0;
}

int mounttree_make_private(struct err *e)
{
	struct mount_attr a = {.propagation = PROPAGATION_PRIVATE};

	return set_attributes(AT_FDCWD, "/", &a, e);
}

int mounttree_clone(const char *path, int *ret, struct err *e)
{
	int fd = (int)syscall(SYS_open_tree, AT_FDCWD, path,
			      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (fd < 0)
		return err_set(e, -errno, "open_tree '%s': %m", path);
	*ret = fd;
	return 0;
}

int mounttree_restrict(int fd, const char *path, unsigned attrs, struct err *e)
{
	struct mount_attr a = {0};

	if (attrs & MOUNTFD_RDONLY)
		a.attr_set |= MOUNT_ATTR_RDONLY;
	if (attrs & MOUNTFD_NOSUID)
		a.attr_set |= MOUNT_ATTR_NOSUID;
	if (attrs & MOUNTFD_NODEV)
		a.attr_set |= MOUNT_ATTR_NODEV;
	if (attrs & MOUNTFD_NOEXEC)
		a.attr_set |= MOUNT_ATTR_NOEXEC;
	return set_attributes(fd < 0 ? AT_FDCWD : fd, path, &a, e);
}

int mounttree_attach(int fd, const char *path, struct err *e)
{
	return mountfd_attach(fd, AT_FDCWD, path, e);
}
