/*
 * warden/empty.c - deletes a tree depth first.
 *
 * Everything below was written by a sandbox: names are hostile, symbolic links are never followed,
 * and the depth has no bound, so a directory that is deep down is first moved up beside the others.
 */
#include "warden/empty.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/rand.h"

/* Each level keeps a directory open. */
#define DEPTH_MAX 8

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int empty_dir(int trash_fd, int dir_fd, uint64_t until, unsigned depth);

static int move_up(int trash_fd, int dir_fd, const char *name)
{
	char up[RAND_HEX_LEN + 1];

	rand_hex(up);
	return renameat(dir_fd, name, trash_fd, up) == 0 || errno == ENOENT ? 1 : -errno;
}

/* 0 = gone; 1 = something may be left, here or in the trash itself.  The warden helps at times, so
 * what is not there any more is as good as removed. */
static int remove_entry(int trash_fd, int dir_fd, const struct dirent *entry, uint64_t until,
			unsigned depth)
{
	const char *name = entry->d_name;
	int fd, r;

	if (entry->d_type != DT_DIR) {
		if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
			return 0;
		if (errno != EISDIR)
			return -errno;
	}
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (depth >= DEPTH_MAX)
		return move_up(trash_fd, dir_fd, name);
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = empty_dir(trash_fd, fd, until, depth + 1);
	if (r < 0)
		return r;
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return r;
	return errno == ENOTEMPTY ? 1 : -errno;
}

/* Takes the descriptor. */
static int empty_dir(int trash_fd, int dir_fd, uint64_t until, unsigned depth)
{
	struct dirent *entry;
	DIR *d = fdopendir(dir_fd);
	int left = 0, r = 0;

	if (!d) {
		fd_close(dir_fd);
		return -errno;
	}
	while (r >= 0 && (entry = readdir(d))) {
		if (is_dot(entry->d_name))
			continue;
		if (clock_mono_us() >= until) {
			left = 1;
			break;
		}
		r = remove_entry(trash_fd, dirfd(d), entry, until, depth);
		left |= r > 0;
	}
	closedir(d);
	return r < 0 ? r : left;
}

int empty_pass(int trash_fd, uint64_t until)
{
	int copy = openat(trash_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return copy < 0 ? -errno : empty_dir(trash_fd, copy, until, 0);
}
