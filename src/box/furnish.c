/*
 * box/furnish.c - mount points and name files in a root that strangers made.
 *
 * Nobody else sees this root yet, so what was looked at stays as it was; links in it were put there
 * by whoever made the image, and are never followed by their own say.
 */
#include "box/furnish.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/view.h"
#include "box/setup.h"
#include "sys/fsids.h"
#include "sys/openat2.h"

#define TEXT_MAX 4096
#define HOST_ETC "host/rootfs/etc"

static int replace_by_dir(const char *name, struct err *e)
{
	struct stat st;

	if (lstat(name, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	if (unlink(name) < 0 && errno != ENOENT)
		return err_set(e, -errno, "remove the image's /%s: %m", name);
	if (mkdir(name, 0755) < 0)
		return err_set(e, -errno, "mkdir /%s: %m", name);
	return 0;
}

/* A link to another place, dangling or not, is how the image wants it. */
static int make_tmp(struct err *e)
{
	struct stat st;

	if (lstat("tmp", &st) == 0)
		return 0;
	if (mkdir("tmp", 01777) < 0 || chmod("tmp", 01777) < 0)
		return err_set(e, -errno, "mkdir /tmp: %m");
	return 0;
}

static int open_etc(int *ret, struct err *e)
{
	osb_cleanup(fd_closep) int root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = openat2_in_root(root, "etc", O_PATH | O_DIRECTORY, 0);

	if (fd < 0 && replace_by_dir("etc", e) < 0)
		return e->code;
	if (fd < 0)
		fd = openat2_in_root(root, "etc", O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return err_set(e, fd, "open /etc: %s", strerror(-fd));
	*ret = fd;
	return 0;
}

/* How long the file is, if it is a plain one that can be read; else -1. */
static ssize_t read_plain(int dir_fd, const char *name, char text[TEXT_MAX])
{
	osb_cleanup(fd_closep) int fd = -1;
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return -1;
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -1 : read(fd, text, TEXT_MAX);
}

static int write_new(int dir_fd, const char *name, struct view text, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;

	/* An image may have a directory there; if it is not empty, it stays. */
	if (unlinkat(dir_fd, name, 0) < 0 && errno == EISDIR &&
	    unlinkat(dir_fd, name, AT_REMOVEDIR) < 0)
		return 0;
	fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text.p, text.len) != (ssize_t)text.len)
		return err_set(e, fd < 0 ? -errno : -ENOSPC, "write /etc/%s: %m", name);
	return 0;
}

static int write_names(int images_fd, int etc_fd, struct err *e)
{
	static const struct {
		const char *name;
		bool ours; /* the image's own does not count */
	} files[] = {
		{"resolv.conf", true}, /* of another host, or of none */
		{"hosts", false},
		{"hostname", false},
	};
	osb_cleanup(fd_closep) int from =
		openat(images_fd, HOST_ETC, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char wanted[TEXT_MAX], there[TEXT_MAX];
	int r = from < 0 ? err_set(e, -errno, "open images/" HOST_ETC ": %m") : 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(files); i++) {
		ssize_t n = read_plain(from, files[i].name, wanted);
		ssize_t old = read_plain(etc_fd, files[i].name, there);

		if (n < 0 || (old > 0 && !files[i].ours) ||
		    (n == old && memcmp(wanted, there, (size_t)n) == 0))
			continue;
		r = write_new(etc_fd, files[i].name, view_mem(wanted, (size_t)n), e);
	}
	return r;
}

static int furnish_as_root(int images_fd, struct err *e)
{
	static const char *const mount_points[] = {"proc", "sys", "dev"};
	osb_cleanup(fd_closep) int etc = -1;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(mount_points); i++)
		r = replace_by_dir(mount_points[i], e);
	if (r == 0)
		r = make_tmp(e);
	if (r == 0)
		r = open_etc(&etc, e);
	return r < 0 ? r : write_names(images_fd, etc, e);
}

/* Whatever is made belongs to the sandbox's root. */
int furnish(const struct setup *s, int images_fd, struct err *e)
{
	int r = fsids_become(s->id_base, e);

	if (r < 0)
		return r;
	r = furnish_as_root(images_fd, e);
	if (fsids_restore(e) < 0)
		return e->code;
	return r;
}
