/*
 * sys/mountfd.h - mounts as file descriptors: made detached, shaped, then attached.
 *
 * Until it is attached a mount is visible to nobody; a failure leaves nothing behind but a closed
 * fd.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

struct err;

/* Attributes of a mount, as mount_setattr(2) has them. */
enum mountfd_attr {
	MOUNTFD_RDONLY = 1,
	MOUNTFD_NOSUID = 2,
	MOUNTFD_NODEV = 4,
	MOUNTFD_NOEXEC = 8,
};

/* One option of a new filesystem; a NULL value makes it a flag. */
struct mountfd_option {
	const char *key, *value;
};

/* A detached copy of the mount that shows `path`: its root is that directory or file. */
osb_must_check int mountfd_clone(int dirfd, const char *path, int *ret, struct err *e);

/* A new filesystem; `options` may be NULL. */
osb_must_check int mountfd_new(const char *type, const struct mountfd_option *options,
			       size_t options_n, unsigned attrs, int *ret, struct err *e);

/* Does a file system of this type take the option?  Nothing is mounted.  False for those that look
 * at options only when they are mounted. */
bool mountfd_takes(const char *type, const struct mountfd_option *option);

/* Sets attributes; `userns_fd` >= 0 also maps the ids of a detached copy to that user namespace. */
osb_must_check int mountfd_shape(int mount_fd, unsigned attrs, int userns_fd, struct err *e);

osb_must_check int mountfd_attach(int mount_fd, int dirfd, const char *path, struct err *e);

/* On the directory that `target_fd` (O_PATH is enough) is open on. */
osb_must_check int mountfd_attach_to(int mount_fd, int target_fd, struct err *e);

/* ---- whole trees: a directory with all that is mounted below it ---- */

osb_must_check int mountfd_clone_tree(int dir_fd, int *ret, struct err *e);

/* As mountfd_shape(), for every mount of a detached tree; nothing that is mounted elsewhere later
 * shows up in it. */
osb_must_check int mountfd_shape_tree(int mount_fd, unsigned attrs, int userns_fd, struct err *e);
