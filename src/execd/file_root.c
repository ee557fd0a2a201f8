/*
 * execd/file_root.c - resolving paths once, below the real root or below one of our own.
 */
#include "execd/file_root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "execd/app.h"
#include "execd/file_names.h"
#include "execd/paths.h"
#include "sys/openat2.h"

#define MAX_LINKS 40 /* as the kernel */

#define DIR_FLAGS (O_PATH | O_DIRECTORY | O_CLOEXEC)

const struct file_root file_root_real = {.fd = -1};

int file_root_copy(const struct file_root *r, struct file_root *ret, struct err *e)
{
	struct file_root copy = {.fd = -1, .read_only = r->read_only};

	if (r->fd >= 0) {
		copy.fd = fcntl(r->fd, F_DUPFD_CLOEXEC, 3);
		if (copy.fd < 0)
			return err_set(e, -errno, "keep the root directory open: %m");
	}
	copy.cwd = r->cwd ? mem_strdup(r->cwd) : NULL;
	*ret = copy;
	return 0;
}

void file_root_done(struct file_root *r)
{
	r->fd = fd_close(r->fd);
	free(take_ptr(r->cwd));
}

int file_root_path(const struct file_root *r, struct app *app, struct arena *a, struct view text,
		   const char **ret, struct err *e)
{
	return paths_resolve_at(app, a, text, /* env= */ NULL, r->cwd, ret, e);
}

int file_root_check_writable(const struct file_root *r, const char *path, struct err *e)
{
	char name[FILE_NAME_SHORT];

	if (!r->read_only)
		return 0;
	return err_set(e, -EROFS, "'%s' can not be changed: the workspace is read-only",
		       file_name_short(path, name));
}

/* The fd or -errno, without words. */
static int open_below(const struct file_root *r, const char *path, int flags)
{
	int fd;

	if (r->fd >= 0)
		return openat2_in_root(r->fd, path, flags, 0);
	fd = open(path, flags | O_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

int file_root_open(const struct file_root *r, const char *path, int flags, struct err *e)
{
	char name[FILE_NAME_SHORT];
	int fd = open_below(r, path, flags);

	if (fd < 0) {
		errno = -fd;
		return err_set(e, fd, "open '%s': %m", file_name_short(path, name));
	}
	return fd;
}

/* Splits at the last slash; `dir` gets what is before it.  Returns the name behind it. */
static const char *split_last(const char *path, char dir[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	size_t len = slash > path ? (size_t)(slash - path) : 1;

	memcpy(dir, path, len);
	dir[len] = '\0';
	return slash + 1;
}

int file_root_place(const struct file_root *r, const char *path, struct file_place *ret,
		    struct err *e)
{
	char dir[PATH_MAX], shown[FILE_NAME_SHORT];
	const char *name = split_last(path, dir);
	bool whole = *name == '\0' || strcmp(name, "..") == 0;
	int fd;

	if (strlen(name) > NAME_MAX)
		return err_set(e, -ENAMETOOLONG, "'%s': a name has at most %d bytes",
			       file_name_short(path, shown), NAME_MAX);

	fd = open_below(r, whole ? path : dir, DIR_FLAGS);
	if (fd < 0) {
		errno = -fd;
		return err_set(e, fd, "'%s': %m", file_name_short(path, shown));
	}
	ret->dir_fd = fd;
	(void)snprintf(ret->name, sizeof(ret->name), "%s", whole ? "." : name);
	return 0;
}

/* The path that a link at the end of `path` stands for, in place. */
static int follow(char path[PATH_MAX], const char *target)
{
	char dir[PATH_MAX];
	size_t len;

	(void)split_last(path, dir); /* only the directory counts */
	if (target[0] == '/')
		dir[0] = '\0';
	if (strlen(dir) + strlen(target) + 2 > PATH_MAX)
		return -ENAMETOOLONG;

	len = strlen(dir);
	memcpy(path, dir, len);
	path[len++] = '/';
	memcpy(path + len, target, strlen(target) + 1);
	len += strlen(target);
	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	return 0;
}

int file_root_locate(const struct file_root *r, const char *path, struct file_place *ret,
		     struct err *e)
{
	char current[PATH_MAX], target[PATH_MAX], shown[FILE_NAME_SHORT];

	memcpy(current, path, strlen(path) + 1);
	for (int links = 0; links <= MAX_LINKS; links++) {
		osb_cleanup(file_place_done) struct file_place place = FILE_PLACE_NONE;
		ssize_t n;
		int code;

		code = file_root_place(r, current, &place, e);
		if (code < 0)
			return code;
		n = readlinkat(place.dir_fd, place.name, target, sizeof(target) - 1);
		if (n < 0 && errno != EINVAL && errno != ENOENT)
			return err_set(e, -errno, "'%s': %m", file_name_short(path, shown));
		if (n < 0) {
			*ret = place;
			place.dir_fd = -1;
			return 0;
		}
		target[n] = '\0';
		if (n == 0 || follow(current, target) < 0)
			return err_set(e, -ENAMETOOLONG, "'%s': its symlink names too long a path",
				       file_name_short(path, shown));
	}
	return err_set(e, -ELOOP, "'%s': too many levels of symlinks",
		       file_name_short(path, shown));
}

/* Opens the deepest directory of `path` that exists; *ret_rest is what is missing behind it. */
static int open_existing(const struct file_root *r, const char *path, const char **ret_rest)
{
	char prefix[PATH_MAX];
	size_t len = strlen(path);

	memcpy(prefix, path, len + 1);
	for (;;) {
		int fd = open_below(r, prefix, DIR_FLAGS);

		if (fd != -ENOENT || len <= 1) {
			*ret_rest = path + len;
			return fd;
		}
		while (len > 1 && prefix[len - 1] != '/')
			len--;
		while (len > 1 && prefix[len - 1] == '/')
			len--;
		prefix[len] = '\0';
	}
}

/* Makes `name` in `dir_fd` and opens it: a directory made by somebody else meanwhile will do. */
static int make_dir(int dir_fd, struct view name)
{
	char text[NAME_MAX + 1];
	int fd;

	if (name.len > NAME_MAX)
		return -ENAMETOOLONG;
	if (view_is(name, "..")) /* in a directory that was not there */
		return -ENOENT;
	memcpy(text, name.p, name.len);
	text[name.len] = '\0';

	if (mkdirat(dir_fd, text, 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dir_fd, text, DIR_FLAGS | O_NOFOLLOW);
	return fd >= 0 ? fd : -errno;
}

int file_root_make_dirs(const struct file_root *r, const char *path, struct err *e)
{
	const char *missing;
	char shown[FILE_NAME_SHORT];
	struct view rest, name;
	int fd = open_existing(r, path, &missing);

	rest = view_of(missing);
	while (fd >= 0 && view_split(&rest, '/', &name)) {
		int next;

		if (name.len == 0)
			continue;
		next = make_dir(fd, name);
		fd_close(fd);
		fd = next;
	}
	if (fd < 0) {
		errno = -fd;
		return err_set(e, fd, "create directory '%s': %m", file_name_short(path, shown));
	}
	return fd;
}

int file_root_make_parents(const struct file_root *r, const char *path, struct err *e)
{
	char dir[PATH_MAX];
	int fd;

	(void)split_last(path, dir); /* only the directory counts */
	fd = file_root_make_dirs(r, dir, e);
	if (fd < 0)
		return fd;
	fd_close(fd);
	return 0;
}

static int check_regular(const struct stat *st, const char *path, struct err *e)
{
	char name[FILE_NAME_SHORT];

	if (S_ISREG(st->st_mode))
		return 0;
	return err_set(e, -EINVAL, "'%s' is %s, not a regular file", file_name_short(path, name),
		       S_ISDIR(st->st_mode)    ? "a directory"
		       : S_ISFIFO(st->st_mode) ? "a FIFO"
		       : S_ISSOCK(st->st_mode) ? "a socket"
		       : S_ISLNK(st->st_mode)  ? "a symlink"
					       : "a device");
}

int file_root_open_regular(const struct file_root *r, const char *path, struct stat *ret_st,
			   struct err *e)
{
	osb_cleanup(file_place_done) struct file_place place = FILE_PLACE_NONE;
	osb_cleanup(fd_closep) int fd = -1;
	char name[FILE_NAME_SHORT];
	struct stat st;
	int code;

	code = file_root_locate(r, path, &place, e);
	if (code < 0)
		return code;

	/* Looked at before it is opened, because opening a device may do something. */
	if (fstatat(place.dir_fd, place.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "'%s': %m", file_name_short(path, name));
	code = check_regular(&st, path, e);
	if (code < 0)
		return code;

	fd = openat(place.dir_fd, place.name,
		    O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "open '%s': %m", file_name_short(path, name));
	code = check_regular(&st, path, e);
	if (code < 0)
		return code;

	*ret_st = st;
	return take_fd(fd);
}
