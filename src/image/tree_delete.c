/*
 * image/tree_delete.c - directories that lie deep are moved up first, so that neither memory nor
 * open files grow with the depth.
 */
#include "image/tree_delete.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/rand.h"

struct removal {
	int top_fd;
	char prefix[RAND_HEX_LEN + 1]; /* of directories that moved up */
	uint64_t moved_n;
};

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* True when the name is gone. */
static bool unlink_any(int dir_fd, const char *name)
{
	return unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT ||
	       unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

static DIR *open_dir(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		fd_close(fd);
	return d;
}

/* Files go, full directories move up to the top. */
static int flatten(struct removal *r, const char *name, struct err *e)
{
	DIR *d = open_dir(r->top_fd, name);
	struct dirent *entry;
	int result = 0;

	if (!d)
		return errno == ENOENT ? 0 : err_set(e, -errno, "open '%s': %m", name);
	while (result == 0 && (entry = readdir(d))) {
		char up[sizeof(r->prefix) + 24];

		if (is_dot(entry->d_name) || unlink_any(dirfd(d), entry->d_name))
			continue;
		snprintf(up, sizeof(up), "%s-%ju", r->prefix, (uintmax_t)r->moved_n++);
		if (renameat(dirfd(d), entry->d_name, r->top_fd, up) < 0 && errno != ENOENT)
			result = err_set(e, -errno, "remove '%s': %m", entry->d_name);
	}
	closedir(d);
	return result;
}

/* 1 when something was there. */
static int pass(struct removal *r, struct err *e)
{
	DIR *d = open_dir(r->top_fd, ".");
	struct dirent *entry;
	int result = 0, found = 0;

	if (!d)
		return err_set(e, -errno, "open a directory: %m");
	while (result == 0 && (entry = readdir(d))) {
		if (is_dot(entry->d_name) || unlink_any(r->top_fd, entry->d_name))
			continue;
		found = 1;
		result = flatten(r, entry->d_name, e);
		if (result == 0)
			(void)unlinkat(r->top_fd, entry->d_name, AT_REMOVEDIR);
	}
	closedir(d);
	return result < 0 ? result : found;
}

int tree_delete_content(int dir_fd, const char *name, struct err *e)
{
	osb_cleanup(fd_closep) int top = -1;
	struct removal r = {0};
	int n;

	top = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (top < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "open '%s': %m", name);
	r.top_fd = top;
	rand_hex(r.prefix);
	while ((n = pass(&r, e)) > 0)
		;
	return n;
}

int tree_delete(int dir_fd, const char *name, struct err *e)
{
	int r;

	if (unlink_any(dir_fd, name))
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return err_set(e, -errno, "remove '%s': %m", name);
	r = tree_delete_content(dir_fd, name, e);
	if (r == 0 && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		r = err_set(e, -errno, "remove '%s': %m", name);
	return r;
}
