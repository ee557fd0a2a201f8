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
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "sys/spread.h"
#include "warden/paths.h"
#include "warden/trash.h"
#include "warden/warden.h"

#define YARDS	  1024u
#define YARD_NAME sizeof("3ff")
#define YARD_PATH (YARD_NAME + BOX_NAME_MAX)

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

/* Only those that an earlier warden has used are there. */
static int clear_all(struct warden *w, struct err *e)
{
	int fd = fcntl(w->yards_fd, F_DUPFD_CLOEXEC, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!d) {
		fd_close(fd);
		return err_set(e, -errno, "list yards: %m");
	}
	while ((entry = readdir(d)))
		if (entry->d_name[0] != '.')
			clear(w, entry->d_name);
	closedir(d);
	return 0;
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
	return clear_all(w, e);
}

/* The yard itself is made when its turn comes first. */
static int make_in_yard(struct warden *w, const char *yard, const char *path, mode_t mode)
{
	if (mkdirat(w->yards_fd, path, mode) == 0)
		return 0;
	if (errno != ENOENT || (mkdirat(w->yards_fd, yard, 0700) < 0 && errno != EEXIST))
		return -errno;
	return mkdirat(w->yards_fd, path, mode) < 0 ? -errno : 0;
}

int yards_make_box(struct warden *w, const char *name, mode_t mode, struct err *e)
{
	char path[YARD_PATH], yard[YARD_NAME];
	int r;

	if (w->yards_fd < 0) {
		if (mkdirat(w->boxes_fd, name, mode) < 0)
			return err_set(e, -errno, "mkdir boxes/%s: %m", name);
		return 0;
	}
	snprintf(yard, sizeof(yard), "%03x", w->next_yard++ % YARDS);
	snprintf(path, sizeof(path), "%s/%s", yard, name);
	r = make_in_yard(w, yard, path, mode);
	if (r < 0)
		return err_set(e, r, "mkdir yards/%s: %s", path, strerror(-r));
	if (renameat(w->yards_fd, path, w->boxes_fd, name) < 0) {
		err_set(e, -errno, "rename yards/%s: %m", path);
		(void)unlinkat(w->yards_fd, path, AT_REMOVEDIR);
		return e->code;
	}
	return 0;
}
