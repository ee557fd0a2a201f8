/*
 * box/shared.c - a small tmpfs with an empty file, an empty directory and the tree of /sys.
 *
 * A copy of a mount keeps its attributes: whatever is read-only here stays so in every sandbox.
 */
#include "box/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "box/cgroup.h"
#include "sys/mountfd.h"

#define QUIET	(MOUNTFD_NOSUID | MOUNTFD_NODEV | MOUNTFD_NOEXEC)
#define QUIETER (QUIET | MOUNTFD_RDONLY)

static const char *const dirs[] = {
	SHARED_DIR,
	SHARED_HIDDEN,
	SHARED_HIDDEN "/proc",
	SHARED_CGROUP,
	SHARED_SYS,
	SHARED_SYS "/devices",
	SHARED_SYS "/devices/system",
	SHARED_SYS "/fs",
	SHARED_SYS "/fs/cgroup",
};

/* Of /sys programs need to know the processors; the rest describes the host. */
static const char *const shown[] = {"devices/system/cpu", "devices/system/node"};

static int make_dir(int top, const char *path, struct err *e)
{
	if (mkdirat(top, path, 0755) < 0)
		return err_set(e, -errno, "mkdir '%s': %m", path);
	return 0;
}

static int make_tree(int top, const struct cgroups *c, struct err *e)
{
	const char *const *v1 = cgroups_shown(c);
	osb_cleanup(fd_closep) int file = -1;
	char path[64];
	int r = 0;

	file = openat(top, SHARED_FILE, O_CREAT | O_RDONLY | O_CLOEXEC, 0444);
	if (file < 0)
		return err_set(e, -errno, "make an empty file: %m");
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(dirs); i++)
		r = make_dir(top, dirs[i], e);
	for (size_t i = 0; r == 0 && v1 && v1[i]; i++) {
		snprintf(path, sizeof(path), SHARED_SYS "/fs/cgroup/%s", v1[i]);
		r = make_dir(top, path, e);
		snprintf(path, sizeof(path), SHARED_CGROUP "/%s", v1[i]);
		if (r == 0)
			r = make_dir(top, path, e);
	}
	return r;
}

/* Copies of the warden's own, which hold nothing of a network namespace. */
static int show_processors(int top, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(shown); i++) {
		osb_cleanup(fd_closep) int fd = -1;
		char from[64], to[64];

		snprintf(from, sizeof(from), "/sys/%s", shown[i]);
		snprintf(to, sizeof(to), SHARED_SYS "/%s", shown[i]);
		if (access(from, F_OK) < 0)
			continue; /* a kernel without it */
		r = make_dir(top, to, e);
		if (r == 0)
			r = mountfd_clone(AT_FDCWD, from, &fd, e);
		if (r == 0)
			r = mountfd_shape(fd, QUIETER, -1, e);
		if (r == 0)
			r = mountfd_attach(fd, top, to, e);
	}
	return r;
}

int shared_make(const char *where, const struct cgroups *c, struct err *e)
{
	struct mountfd_option o[] = {{"mode", "0755"}, {"size", "64k"}};
	osb_cleanup(fd_closep) int mount_fd = -1, top = -1, cgroups = -1;
	int r = mountfd_new("tmpfs", o, ARRAY_LEN(o), QUIET, &mount_fd, e);

	if (r == 0)
		r = mountfd_attach(mount_fd, AT_FDCWD, where, e);
	if (r < 0)
		return r;
	top = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return err_set(e, -errno, "open '%s': %m", where);
	r = make_tree(top, c, e);
	if (r == 0)
		r = show_processors(top, e);
	if (r < 0)
		return r;
	cgroups = openat(top, SHARED_CGROUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroups < 0)
		return err_set(e, -errno, "open '%s': %m", SHARED_CGROUP);
	r = cgroups_show(c, cgroups, e);
	return r < 0 ? r : mountfd_shape(mount_fd, QUIETER, -1, e);
}
