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

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Empties one directory: files are unlinked, non-empty directories move up into the trash itself.
 */
static int empty_dir(int trash_fd, int dir_fd, uint64_t until)
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
		if (renameat(dirfd(d), entry->d_name, trash_fd, up) < 0 && errno != ENOENT)
			r = -errno;
	}
	closedir(d);
	return r;
}

int empty_pass(int trash_fd, uint64_t until)
{
	int copy = openat(trash_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
		if (unlinkat(trash_fd, entry->d_name, 0) == 0 ||
		    unlinkat(trash_fd, entry->d_name, AT_REMOVEDIR) == 0)
			continue;
		fd = openat(trash_fd, entry->d_name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			r = empty_dir(trash_fd, fd, until);
		else if (errno != ENOENT) /* somebody else empties, too */
			r = -errno;
		more = true; /* the directory itself, and what moved up out of it */
	}
	closedir(d);
	return r == 0 && more ? 1 : r;
}
