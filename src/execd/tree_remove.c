/*
 * execd/tree_remove.c - removes trees of any depth from fds alone.
 */
#include "execd/tree_remove.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/err.h"
#include "execd/file_walk.h"

static int remove_entries(struct file_walk *w, struct err *e)
{
	struct file_walk_entry entry;
	int r;

	while ((r = file_walk_next(w, &entry, e)) > 0 || r == -EAGAIN) {
		int flags = entry.kind == FILE_WALK_DIR_END ? AT_REMOVEDIR : 0;

		if (r == -EAGAIN || entry.kind == FILE_WALK_DIR)
			continue;
		if (unlinkat(entry.dir_fd, entry.name, flags) < 0 && errno != ENOENT)
			return err_set(e, -errno, "delete '%s': %m", entry.name);
	}
	return r;
}

int tree_empty(int dir_fd, const char *name, struct err *e)
{
	struct file_walk *w = NULL;
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (fd < 0)
		return err_set(e, -errno, "open '%s': %m", name);
	r = file_walk_open(fd, "/", UINT_MAX, FILE_WALK_LEAVE | FILE_WALK_REMOVING, &w, e);
	if (r == 0)
		r = remove_entries(w, e);
	file_walk_close(w);
	return r;
}

int tree_remove(int dir_fd, const char *name, struct err *e)
{
	int r;

	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return err_set(e, -errno, "delete '%s': %m", name);
	r = tree_empty(dir_fd, name, e);
	if (r == 0 && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		r = err_set(e, -errno, "delete '%s': %m", name);
	return r;
}
