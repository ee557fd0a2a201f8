/*
 * image/tree_copy.c - the original is walked once; every open directory has its copy open.
 */
#include "image/tree_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "image/file_copy.h"
#include "image/tree_walk.h"

#define XATTR_LIST_MAX	65536
#define XATTR_VALUE_MAX 65536

struct copying {
	struct tree_walk *walk;
	int links_fd;
	struct layer_totals *totals;
	struct file_copy files;
	int *dirs; /* the copies of the directories that are entered; the first is borrowed */
	size_t dirs_n, dirs_cap;
	char *names, *value; /* of extended attributes */
};

static void copying_done(struct copying *c)
{
	for (size_t i = 1; i < c->dirs_n; i++)
		fd_close(c->dirs[i]);
	free(c->dirs);
	free(c->names);
	free(c->value);
	tree_walk_close(c->walk);
}

static void push_dir(struct copying *c, int fd)
{
	if (c->dirs_n == c->dirs_cap) {
		c->dirs_cap = c->dirs_cap ? c->dirs_cap * 2 : 16;
		c->dirs = mem_resize(c->dirs, c->dirs_cap, sizeof(c->dirs[0]));
	}
	c->dirs[c->dirs_n++] = fd;
}

/*
 * What a sandbox cannot set is the kernel's own: marks that say how this directory lies on those
 * below.  Others are about this very upper directory, or about the host.
 */
static bool is_kept(const char *name)
{
	static const char *const marks[] = {
		"security.capability",	    "trusted.overlay.opaque",	 "trusted.overlay.redirect",
		"trusted.overlay.metacopy", "trusted.overlay.whiteouts",
	};

	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (strcmp(name, marks[i]) == 0)
			return true;
	return strncmp(name, "user.", 5) == 0;
}

static int copy_xattrs(struct copying *c, int from_fd, int to_fd, struct err *e)
{
	ssize_t len = flistxattr(from_fd, c->names, XATTR_LIST_MAX);

	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(c->names + at) + 1) {
		const char *name = c->names + at;
		ssize_t n;

		if (!is_kept(name))
			continue;
		n = fgetxattr(from_fd, name, c->value, XATTR_VALUE_MAX);
		if (n < 0 || fsetxattr(to_fd, name, c->value, (size_t)n, 0) < 0)
			return err_set(e, -errno, "copy the attribute %s: %m", name);
	}
	if (len < 0 && errno != EOPNOTSUPP)
		return err_set(e, -errno, "list extended attributes: %m");
	return 0;
}

/* In this order: new owners take special bits and capabilities away. */
static int copy_facts(struct copying *c, int from_fd, const struct stat *st, int to_fd,
		      struct err *e)
{
	struct timespec times[2] = {st->st_atim, st->st_mtim};
	int r;

	if (fchown(to_fd, st->st_uid, st->st_gid) < 0 || fchmod(to_fd, st->st_mode & 07777) < 0)
		return err_set(e, -errno, "copy owner and mode: %m");
	r = copy_xattrs(c, from_fd, to_fd, e);
	if (r == 0 && futimens(to_fd, times) < 0)
		r = err_set(e, -errno, "copy the times: %m");
	return r;
}

static int copy_named_facts(int to_dir, const char *name, const struct stat *st, struct err *e)
{
	struct timespec times[2] = {st->st_atim, st->st_mtim};

	if (fchownat(to_dir, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    utimensat(to_dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "copy owner and times: %m");
	return 0;
}

/* 1 when it was a further name of a file that is there already. */
static int link_known(struct copying *c, const struct stat *st, int to_dir, const char *name,
		      struct err *e)
{
	char inode[24];

	snprintf(inode, sizeof(inode), "%ju", (uintmax_t)st->st_ino);
	if (linkat(c->links_fd, inode, to_dir, name, 0) == 0)
		return 1;
	return errno == ENOENT ? 0 : err_set(e, -errno, "link '%s': %m", name);
}

static int remember(struct copying *c, const struct stat *st, int to_dir, const char *name,
		    struct err *e)
{
	char inode[24];

	snprintf(inode, sizeof(inode), "%ju", (uintmax_t)st->st_ino);
	if (linkat(to_dir, name, c->links_fd, inode, 0) < 0)
		return err_set(e, -errno, "link '%s': %m", name);
	return 0;
}

static int copy_file(struct copying *c, const struct tree_entry *t, const struct stat *st,
		     int to_dir, struct err *e)
{
	osb_cleanup(fd_closep) int from = -1, to = -1;
	int r = st->st_nlink > 1 ? link_known(c, st, to_dir, t->name, e) : 0;

	if (r != 0)
		return r < 0 ? r : 0;
	from = openat(t->dir_fd, t->name,
		      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOATIME | O_CLOEXEC);
	if (from < 0)
		return err_set(e, -errno, "open '%s': %m", t->name);
	to = openat(to_dir, t->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to < 0)
		return err_set(e, -errno, "create '%s': %m", t->name);
	r = file_copy_content(&c->files, from, to, (uint64_t)st->st_size, (uint64_t)st->st_blocks,
			      e);
	if (r == 0)
		r = copy_facts(c, from, st, to, e);
	if (r == 0 && st->st_nlink > 1)
		r = remember(c, st, to_dir, t->name, e);
	layer_totals_add(c->totals, (uint64_t)st->st_size);
	return r;
}

static int copy_symlink(const struct tree_entry *t, const struct stat *st, int to_dir,
			struct err *e)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(t->dir_fd, t->name, target, sizeof(target) - 1);

	if (n < 0)
		return err_set(e, -errno, "read the link '%s': %m", t->name);
	target[n] = '\0';
	if (symlinkat(target, to_dir, t->name) < 0)
		return err_set(e, -errno, "link '%s': %m", t->name);
	return copy_named_facts(to_dir, t->name, st, e);
}

static int make_node(const struct tree_entry *t, mode_t mode, const struct stat *st, int to_dir,
		     struct err *e)
{
	if (mknodat(to_dir, t->name, mode, makedev(0, 0)) < 0)
		return err_set(e, -errno, "make '%s': %m", t->name);
	return copy_named_facts(to_dir, t->name, st, e);
}

static int enter_dir(struct copying *c, const struct tree_entry *t, int to_dir, struct err *e)
{
	int fd;

	if (mkdirat(to_dir, t->name, 0700) < 0)
		return err_set(e, -errno, "mkdir '%s': %m", t->name);
	fd = openat(to_dir, t->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open '%s': %m", t->name);
	push_dir(c, fd);
	return tree_walk_enter(c->walk, e);
}

static int leave_dir(struct copying *c, const struct tree_entry *t, struct err *e)
{
	int to = c->dirs[c->dirs_n - 1];
	struct stat st;
	int r;

	if (fstat(t->dir_fd, &st) < 0)
		return err_set(e, -errno, "stat a directory: %m");
	r = copy_facts(c, t->dir_fd, &st, to, e);
	if (c->dirs_n > 1) {
		fd_close(to);
		c->dirs_n--;
	}
	return r;
}

static int copy_entry(struct copying *c, const struct tree_entry *t, struct err *e)
{
	int to_dir = c->dirs[c->dirs_n - 1];
	struct stat st;

	if (t->leaving)
		return leave_dir(c, t, e);
	if (fstatat(t->dir_fd, t->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "stat '%s': %m", t->name);
	c->totals->files++;
	switch (st.st_mode & S_IFMT) {
	case S_IFDIR:
		return enter_dir(c, t, to_dir, e);
	case S_IFREG:
		return copy_file(c, t, &st, to_dir, e);
	case S_IFLNK:
		return copy_symlink(t, &st, to_dir, e);
	case S_IFIFO:
		return make_node(t, st.st_mode, &st, to_dir, e);
	default: /* whiteouts stay; under a socket's name nothing of below may show up again */
		return make_node(t, S_IFCHR, &st, to_dir, e);
	}
}

int tree_copy(int from_fd, int to_fd, int links_fd, struct layer_totals *totals, struct err *e)
{
	osb_cleanup(copying_done) struct copying c = {.links_fd = links_fd, .totals = totals};
	struct tree_entry t;
	int r, fd = openat(from_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, -errno, "open a directory: %m");
	r = tree_walk_open(fd, &c.walk, e);
	if (r < 0)
		return r;
	c.names = mem_alloc(XATTR_LIST_MAX);
	c.value = mem_alloc(XATTR_VALUE_MAX);
	push_dir(&c, to_fd);
	while ((r = tree_walk_next(c.walk, &t, e)) > 0) {
		r = copy_entry(&c, &t, e);
		if (r < 0)
			return err_ctx(e, "'%.100s'", t.path.p);
	}
	return r;
}
