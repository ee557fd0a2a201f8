/*
 * sys/mountfd.c - the mount API of Linux 5.2 and later, one call per function.
 */
#include "sys/mountfd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif

static uint64_t kernel_attrs(unsigned attrs)
{
	uint64_t k = 0;

	if (attrs & MOUNTFD_RDONLY)
		k |= MOUNT_ATTR_RDONLY;
	if (attrs & MOUNTFD_NOSUID)
		k |= MOUNT_ATTR_NOSUID;
	if (attrs & MOUNTFD_NODEV)
		k |= MOUNT_ATTR_NODEV;
	if (attrs & MOUNTFD_NOEXEC)
		k |= MOUNT_ATTR_NOEXEC;
	return k;
}

int mountfd_clone(int dirfd, const char *path, int *ret, struct err *e)
{
	int fd = (int)syscall(SYS_open_tree, dirfd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd < 0)
		return err_set(e, -errno, "open_tree '%s': %m", path);
	*ret = fd;
	return 0;
}

/* The kernel explains what it dislikes in a log that is read from the fs fd. */
static int fs_failed(int fs, const char *type, const char *what, struct err *e)
{
	int code = errno;
	char text[160];
	ssize_t n = read(fs, text, sizeof(text) - 1);

	if (n < 0)
		n = 0;
	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	errno = code;
	return err_set(e, -code, "%s of %s: %m%s%s", what, type, n ? ": " : "", text);
}

int mountfd_new(const char *type, const struct mountfd_option *options, size_t options_n,
		unsigned attrs, int *ret, struct err *e)
{
	osb_cleanup(fd_closep) int fs = -1;
	int fd;

	fs = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
	if (fs < 0)
		return err_set(e, -errno, "fsopen %s: %m", type);
	for (size_t i = 0; i < options_n; i++) {
		unsigned cmd = options[i].value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

		if (syscall(SYS_fsconfig, fs, cmd, options[i].key, options[i].value, 0) < 0)
			return fs_failed(fs, type, options[i].key, e);
	}
	if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return fs_failed(fs, type, "creation", e);
	fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, kernel_attrs(attrs));
	if (fd < 0)
		return fs_failed(fs, type, "fsmount", e);
	*ret = fd;
	return 0;
}

static bool takes(int fs, const char *key, const char *value)
{
	return syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, key, value, 0) == 0;
}

bool mountfd_takes(const char *type, const struct mountfd_option *option)
{
	osb_cleanup(fd_closep) int fs = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);

	/* Who takes this takes everything, for now. */
	return fs >= 0 && !takes(fs, "opensandbox_no_such_option", "x") &&
	       takes(fs, option->key, option->value);
}

static int set_attr(int mount_fd, unsigned flags, struct mount_attr *a, int userns_fd,
		    struct err *e)
{
	if (userns_fd >= 0) {
		a->attr_set |= MOUNT_ATTR_IDMAP;
		a->userns_fd = (uint64_t)userns_fd;
	}
	if (syscall(SYS_mount_setattr, mount_fd, "", AT_EMPTY_PATH | flags, a, sizeof(*a)) < 0)
		return err_set(e, -errno, "mount_setattr: %m");
	return 0;
}

int mountfd_shape(int mount_fd, unsigned attrs, int userns_fd, struct err *e)
{
	struct mount_attr a = {.attr_set = kernel_attrs(attrs)};

	return set_attr(mount_fd, 0, &a, userns_fd, e);
}

int mountfd_attach(int mount_fd, int dirfd, const char *path, struct err *e)
{
	if (syscall(SYS_move_mount, mount_fd, "", dirfd, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_set(e, -errno, "move_mount '%s': %m", path);
	return 0;
}

int mountfd_attach_to(int mount_fd, int target_fd, struct err *e)
{
	if (syscall(SYS_move_mount, mount_fd, "", target_fd, "",
		    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_set(e, -errno, "move_mount: %m");
	return 0;
}

int mountfd_clone_tree(int dir_fd, int *ret, struct err *e)
{
	int fd = (int)syscall(SYS_open_tree, dir_fd, "",
			      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);

	if (fd < 0)
		return err_set(e, -errno, "open_tree: %m");
	*ret = fd;
	return 0;
}

int mountfd_shape_tree(int mount_fd, unsigned attrs, int userns_fd, struct err *e)
{
	struct mount_attr a = {.attr_set = kernel_attrs(attrs), .propagation = MS_PRIVATE};

	return set_attr(mount_fd, AT_RECURSIVE, &a, userns_fd, e);
}
