/*
 * image/volume_store.c - directories that sandboxes write into.
 */
#include "image/volume_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/view.h"
#include "image/tree_delete.h"

#define GOING	   ".going-"
#define NAME_BYTES 32

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

int volume_store_make(int volumes_fd, uint64_t number, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1, data = -1;
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "%" PRIu64, number);
	if (mkdirat(volumes_fd, name, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "make volume %s: %m", name);
	fd = openat(volumes_fd, name, DIR_FLAGS);
	if (fd < 0)
		return err_set(e, -errno, "open volume %s: %m", name);
	if (mkdirat(fd, "data", 0755) < 0)
		return errno == EEXIST ? 0 : err_set(e, -errno, "make volume %s: %m", name);
	data = openat(fd, "data", DIR_FLAGS);
	if (data < 0 || fchmod(data, 0755) < 0 || fsync(fd) < 0)
		return err_set(e, -errno, "make volume %s: %m", name);
	return 0;
}

int volume_store_open(int volumes_fd, uint64_t number, int *ret_fd, struct err *e)
{
	char name[NAME_BYTES];
	int fd;

	snprintf(name, sizeof(name), "%" PRIu64 "/data", number);
	fd = openat(volumes_fd, name, DIR_FLAGS);
	if (fd < 0)
		return err_set(e, -errno, "open volume %ju: %m", (uintmax_t)number);
	*ret_fd = fd;
	return 0;
}

static int remove_named(int volumes_fd, const char *name, struct err *e)
{
	char going[sizeof(GOING) + NAME_BYTES];
	int r;

	snprintf(going, sizeof(going), GOING "%.*s", NAME_BYTES - 1, name);
	r = tree_delete(volumes_fd, going, e); /* of an attempt that was killed */
	if (r < 0)
		return r;
	if (renameat(volumes_fd, name, volumes_fd, going) < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "remove volume %s: %m", name);
	return tree_delete(volumes_fd, going, e);
}

int volume_store_remove(int volumes_fd, uint64_t number, struct err *e)
{
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "%" PRIu64, number);
	return remove_named(volumes_fd, name, e);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int clean_one(int volumes_fd, const char *name, const uint64_t *keep, size_t n,
		     uint64_t next, struct err *e)
{
	bool going = view_starts(view_of(name), VIEW(GOING));
	uint64_t number;

	if (strlen(name) >= NAME_BYTES ||
	    !num_parse_u64(view_of(going ? name + sizeof(GOING) - 1 : name), &number) ||
	    number >= next)
		return 0;
	if (going)
		return tree_delete(volumes_fd, name, e);
	if (n > 0 && bsearch(&number, keep, n, sizeof(number), by_value))
		return 0;
	return remove_named(volumes_fd, name, e);
}

int volume_store_clean(int volumes_fd, const uint64_t *keep, size_t n, uint64_t next, struct err *e)
{
	int r = 0, fd = openat(volumes_fd, ".", DIR_FLAGS);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!d) {
		fd_close(fd);
		return err_set(e, -errno, "open volumes: %m");
	}
	while (r == 0 && (entry = readdir(d)))
		r = clean_one(volumes_fd, entry->d_name, keep, n, next, e);
	closedir(d);
	return r;
}
