/*
 * warden/trash.c - deletes what lies in trash/, depth first, for a moment per turn.
 *
 * Everything below was written by a sandbox: names are hostile, symbolic links are never followed,
 * and the depth has no bound, so a directory that is deep down is first moved up beside the others.
 */
#include "warden/trash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "net/loop.h"
#include "warden/warden.h"

/* A time, not a number of entries: removing one directory takes milliseconds on some disks, and
 * requests wait meanwhile. */
#define TURN_US	 1000
#define RETRY_MS 1000

struct trash {
	struct warden *warden;
	struct loop_task *task;
	struct loop_timer *later;
};

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Empties one directory: files are unlinked, non-empty directories move up into the trash itself.
 */
static int empty_dir(struct warden *w, int dir_fd, uint64_t until)
{
	DIR *d;
	struct dirent *entry;
	int r = 0;

	d = fdopendir(dir_fd); /* owns the fd now */
	if (!d) {
		fd_close(dir_fd);
		return -errno;
	}
	while (r == 0 && clock_mono_us() < until && (entry = readdir(d))) {
		char up[RAND_HEX_LEN + 1];

		if (is_dot(entry->d_name))
			continue;
		if (unlinkat(dirfd(d), entry->d_name, 0) == 0 ||
		    unlinkat(dirfd(d), entry->d_name, AT_REMOVEDIR) == 0)
			continue;
		rand_hex(up);
		if (renameat(dirfd(d), entry->d_name, w->trash_fd, up) < 0)
			r = -errno;
	}
	closedir(d);
	return r;
}

/* One pass over the trash.  1 = there is more, 0 = it is empty, -errno. */
static int pass(struct warden *w)
{
	uint64_t until = clock_mono_us() + TURN_US;
	int copy = openat(w->trash_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	bool more = false;
	int r = 0;
	DIR *d;

	if (copy < 0)
		return -errno;
	d = fdopendir(copy);
	if (!d) {
		fd_close(copy);
		return -errno;
	}
	while (r == 0 && (entry = readdir(d))) {
		int fd;

		if (is_dot(entry->d_name))
			continue;
		if (clock_mono_us() >= until) {
			more = true;
			break;
		}
		if (unlinkat(w->trash_fd, entry->d_name, 0) == 0 ||
		    unlinkat(w->trash_fd, entry->d_name, AT_REMOVEDIR) == 0)
			continue;
		fd = openat(w->trash_fd, entry->d_name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? -errno : empty_dir(w, fd, until);
		more = true; /* the directory itself, and what moved up out of it */
	}
	closedir(d);
	return r == 0 && more ? 1 : r;
}

static void work(void *arg)
{
	struct trash *t = arg;
	int r = pass(t->warden);

	if (r > 0) {
		loop_task_post(t->task);
	} else if (r < 0) {
		log_line(LOG_WARN, "cannot empty the trash, retrying", LOG_S("err", strerror(-r)));
		loop_timer_start(t->later, RETRY_MS);
	}
}

int trash_new(struct warden *w, struct trash **ret, struct err *e)
{
	struct trash *t = mem_new(struct trash);

	(void)e;
	t->warden = w;
	t->task = loop_task_new(w->loop, work, t);
	t->later = loop_timer_new(w->loop, work, t);
	loop_task_post(t->task); /* what an earlier warden left */
	*ret = t;
	return 0;
}

void trash_free(struct trash *t)
{
	if (!t)
		return;
	loop_task_free(t->task);
	loop_timer_free(t->later);
	free(t);
}

void trash_put(struct warden *w, const char *name)
{
	char to[RAND_HEX_LEN + 1];

	rand_hex(to);
	if (renameat(w->boxes_fd, name, w->trash_fd, to) < 0) {
		if (errno != ENOENT)
			log_line(LOG_ERROR, "cannot move a box into the trash",
				 LOG_S("err", strerror(errno)));
		return;
	}
	/* Later: the answer to the server goes first. */
	if (!loop_timer_active(w->trash->later))
		loop_timer_start(w->trash->later, 5);
}
