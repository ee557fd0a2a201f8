/*
 * warden/yards.c - directories that the file system has put far apart; boxes are made in one after
 * the other, and then moved to their place.
 *
 * ext4 puts what is made in a directory near it.  Without a journal it passes over every inode that
 * was deleted there within the last minutes, one by one, before it gives out another: boxes that
 * come and go in one place make each other slow.
 */
#include "warden/yards.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "sys/spread.h"
#include "warden/paths.h"
#include "warden/trash.h"
#include "warden/warden.h"

#define YARDS	  128u
#define YARD_PATH sizeof("7f/") + BOX_NAME_MAX

/* What was made and not moved. */
static void clear(struct warden *w, const char *yard)
{
	int fd = openat(w->yards_fd, yard, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!d) {
		fd_close(fd);
		return;
	}
	while ((entry = readdir(d)))
		if (entry->d_name[0] != '.')
			trash_put_from(w, dirfd(d), entry->d_name);
	closedir(d);
}

int yards_open(struct warden *w, struct err *e)
{
	if (mkdir(PATHS_STATE "/yards", 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "mkdir yards: %m");
	w->yards_fd = open(PATHS_STATE "/yards", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->yards_fd < 0)
		return err_set(e, -errno, "open yards: %m");
	if (!spread_children(w->yards_fd)) {
		w->yards_fd = fd_close(w->yards_fd);
		(void)rmdir(PATHS_STATE "/yards");
		return 0;
	}
	for (unsigned i = 0; i < YARDS; i++) {
		char name[8];

		snprintf(name, sizeof(name), "%02x", i);
		if (mkdirat(w->yards_fd, name, 0700) == 0)
			continue;
		if (errno != EEXIST)
			return err_set(e, -errno, "mkdir yards/%s: %m", name);
		clear(w, name);
	}
	return 0;
}

int yards_make_box(struct warden *w, const char *name, mode_t mode, struct err *e)
{
	char path[YARD_PATH];

	if (w->yards_fd < 0) {
		if (mkdirat(w->boxes_fd, name, mode) < 0)
			return err_set(e, -errno, "mkdir boxes/%s: %m", name);
		return 0;
	}
	snprintf(path, sizeof(path), "%02x/%s", w->next_yard++ % YARDS, name);
	if (mkdirat(w->yards_fd, path, mode) < 0)
		return err_set(e, -errno, "mkdir yards/%s: %m", path);
	if (renameat(w->yards_fd, path, w->boxes_fd, name) < 0) {
		err_set(e, -errno, "rename yards/%s: %m", path);
		(void)unlinkat(w->yards_fd, path, AT_REMOVEDIR);
		return e->code;
	}
	return 0;
}
