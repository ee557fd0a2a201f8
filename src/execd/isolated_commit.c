/*
 * execd/isolated_commit.c - applies what a session changed to its workspace.
 *
 * Directories come before what is in them, so that each entry finds its parent in place.  A file
 * appears whole or not at all: it is written aside and renamed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/rand.h"
#include "execd/file_walk.h"
#include "execd/isolated_upper.h"
#include "execd/overlay_marks.h"
#include "execd/tree_remove.h"
#include "sys/openat2.h"

/* One entry: where it comes from and where it goes. */
struct change {
	const struct file_walk_entry *from;
	struct stat st;
	int to_fd; /* the parent in the workspace */
};

static int failed(const struct change *c, struct err *e)
{
	return err_set(e, -errno, "'%s': %m", c->from->name);
}

static int set_owner_and_times(const struct change *c, int fd)
{
	struct timespec times[2] = {c->st.st_atim, c->st.st_mtim};

	/* Where we may not give files away, they are ours: as the session's own were. */
	if (fchown(fd, c->st.st_uid, c->st.st_gid) < 0 && errno != EPERM)
		return -1;
	if (fchmod(fd, c->st.st_mode & 07777) < 0)
		return -1;
	return futimens(fd, times);
}

static int apply_dir(const struct change *c, struct err *e)
{
	const char *name = c->from->name;
	osb_cleanup(fd_closep) int fd = -1;
	struct stat there;

	if (fstatat(c->to_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0) {
		if (!S_ISDIR(there.st_mode) && unlinkat(c->to_fd, name, 0) < 0)
			return failed(c, e);
		if (S_ISDIR(there.st_mode) && overlay_is_opaque(c->from->dir_fd, name) &&
		    tree_empty(c->to_fd, name, e) < 0)
			return e->code;
	}
	if (mkdirat(c->to_fd, name, 0700) < 0 && errno != EEXIST)
		return failed(c, e);
	fd = openat(c->to_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || set_owner_and_times(c, fd) < 0)
		return failed(c, e);
	return 0;
}

static int copy_bytes(int from, int to)
{
	char chunk[65536];
	ssize_t n;

	/* In the kernel where it can; the rest by hand. */
	while (copy_file_range(from, NULL, to, NULL, SSIZE_MAX & ~(ssize_t)4095, 0) > 0)
		;
	while ((n = read(from, chunk, sizeof(chunk))) > 0)
		for (ssize_t done = 0; done < n;) {
			ssize_t w = write(to, chunk + done, (size_t)(n - done));

			if (w < 0 && errno != EINTR)
				return -1;
			done += w > 0 ? w : 0;
		}
	return n < 0 ? -1 : 0;
}

/* Puts what was made under `temporary` where it belongs, whatever is there. */
static int move_in(const struct change *c, const char *temporary, struct err *e)
{
	const char *name = c->from->name;
	int r;

	if (renameat(c->to_fd, temporary, c->to_fd, name) == 0)
		return 0;
	r = errno == EISDIR || errno == EEXIST || errno == ENOTEMPTY
		    ? tree_remove(c->to_fd, name, e)
		    : failed(c, e);
	if (r == 0 && renameat(c->to_fd, temporary, c->to_fd, name) < 0)
		r = failed(c, e);
	if (r < 0)
		(void)!unlinkat(c->to_fd, temporary, 0);
	return r;
}

static int apply_file(const struct change *c, const char *temporary, struct err *e)
{
	osb_cleanup(fd_closep) int from = -1;
	osb_cleanup(fd_closep) int to = -1;

	from = openat(c->from->dir_fd, c->from->name,
		      O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (from < 0)
		return errno == ENOENT ? 0 : failed(c, e);
	to = openat(c->to_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to < 0)
		return failed(c, e);
	if (copy_bytes(from, to) < 0 || set_owner_and_times(c, to) < 0) {
		int r = failed(c, e);

		(void)!unlinkat(c->to_fd, temporary, 0);
		return r;
	}
	return move_in(c, temporary, e);
}

static int apply_symlink(const struct change *c, const char *temporary, struct err *e)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(c->from->dir_fd, c->from->name, target, sizeof(target) - 1);

	if (n < 0)
		return errno == ENOENT ? 0 : failed(c, e);
	target[n] = '\0';
	if (symlinkat(target, c->to_fd, temporary) < 0)
		return failed(c, e);
	(void)!fchownat(c->to_fd, temporary, c->st.st_uid, c->st.st_gid, AT_SYMLINK_NOFOLLOW);
	return move_in(c, temporary, e);
}

static int apply_special(const struct change *c, const char *temporary, struct err *e)
{
	if (mknodat(c->to_fd, temporary, c->st.st_mode, c->st.st_rdev) < 0)
		return failed(c, e);
	(void)!fchownat(c->to_fd, temporary, c->st.st_uid, c->st.st_gid, AT_SYMLINK_NOFOLLOW);
	return move_in(c, temporary, e);
}

static int apply(const struct change *c, struct err *e)
{
	char temporary[RAND_HEX_LEN + 16], id[RAND_HEX_LEN + 1];

	rand_hex(id);
	snprintf(temporary, sizeof(temporary), ".commit-%s", id);
	if (overlay_is_whiteout(&c->st))
		return tree_remove(c->to_fd, c->from->name, e);
	switch (c->st.st_mode & S_IFMT) {
	case S_IFDIR:
		return apply_dir(c, e);
	case S_IFREG:
		return apply_file(c, temporary, e);
	case S_IFLNK:
		return apply_symlink(c, temporary, e);
	default:
		return apply_special(c, temporary, e);
	}
}

static int commit_entry(int workspace_fd, const struct file_walk_entry *entry, struct err *e)
{
	struct change c = {.from = entry, .to_fd = -1};
	osb_cleanup(fd_closep) int parent = -1;
	char path[PATH_MAX];
	size_t len = entry->path.len - strlen(entry->name);

	if (fstatat(entry->dir_fd, entry->name, &c.st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : failed(&c, e);
	if (len >= sizeof(path))
		return err_set(e, -ENAMETOOLONG, "'%s' lies too deep", entry->name);
	memcpy(path, entry->path.p, len);
	path[len] = '\0';
	parent = openat2_in_root(workspace_fd, path, O_PATH | O_DIRECTORY, 0);
	if (parent == -ENOSYS)
		parent = openat(workspace_fd, len > 1 ? path + 1 : ".",
				O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return err_set(e, parent == -1 ? -errno : parent, "open '%s' in the workspace",
			       path);
	c.to_fd = parent;
	return apply(&c, e);
}

int isolated_upper_commit(int upper_fd, const char *workspace, struct err *e)
{
	osb_cleanup(fd_closep) int workspace_fd = -1;
	struct file_walk_entry entry;
	struct file_walk *w = NULL;
	int fd, r;

	workspace_fd = open(workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (workspace_fd < 0)
		return err_set(e, -errno, "open '%s': %m", workspace);
	fd = openat(upper_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open the upper directory: %m");
	r = file_walk_open(fd, "/", UINT_MAX, 0, &w, e);
	while (r >= 0 && ((r = file_walk_next(w, &entry, e)) > 0 || r == -EAGAIN))
		r = r == -EAGAIN ? 0 : commit_entry(workspace_fd, &entry, e);
	file_walk_close(w);
	return r;
}
