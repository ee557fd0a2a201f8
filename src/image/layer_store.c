/*
 * image/layer_store.c - directories named by numbers.
 */
#include "image/layer_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "image/tree_delete.h"
#include "image/tree_walk.h"

#define NAME_BYTES 24 /* of a number, or of one that goes */

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static void name_of(uint64_t number, char ret[NAME_BYTES])
{
	snprintf(ret, NAME_BYTES, "%" PRIu64, number);
}

/* What lies in there has root's ids, setuid bits and all: nobody else may come near. */
static int open_or_make(int at, const char *name, int *ret, struct err *e)
{
	int fd;

	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "mkdir %s: %m", name);
	fd = openat(at, name, DIR_FLAGS);
	if (fd < 0)
		return err_set(e, -errno, "open %s: %m", name);
	*ret = fd;
	return 0;
}

int layer_store_open(struct layer_store *s, int images_fd, struct err *e)
{
	int r;

	*s = (struct layer_store){-1, -1};
	r = open_or_make(images_fd, "layers", &s->layers_fd, e);
	if (r == 0)
		r = open_or_make(images_fd, "tmp", &s->tmp_fd, e);
	if (r < 0)
		layer_store_close(s);
	return r;
}

void layer_store_close(struct layer_store *s)
{
	s->layers_fd = fd_close(s->layers_fd);
	s->tmp_fd = fd_close(s->tmp_fd);
}

bool layer_store_has(const struct layer_store *s, uint64_t number)
{
	char name[NAME_BYTES];

	name_of(number, name);
	return faccessat(s->layers_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int layer_store_begin(const struct layer_store *s, uint64_t number, int *ret_fd, struct err *e)
{
	char name[NAME_BYTES];
	int r;

	name_of(number, name);
	r = tree_delete(s->tmp_fd, name, e);
	return r == 0 ? open_or_make(s->tmp_fd, name, ret_fd, e) : r;
}

int layer_store_make_dir(int layer_fd, const char *name, int *ret_fd, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	int r = open_or_make(layer_fd, name, &fd, e);

	if (r < 0)
		return r;
	if (fchmod(fd, 0755) < 0)
		return err_set(e, -errno, "chmod %s: %m", name);
	*ret_fd = take_fd(fd);
	return 0;
}

int layer_store_publish(const struct layer_store *s, uint64_t number, int layer_fd, struct err *e)
{
	char name[NAME_BYTES];

	name_of(number, name);
	if (syncfs(layer_fd) < 0)
		return err_set(e, -errno, "write layer %s to the disk: %m", name);
	if (renameat(s->tmp_fd, name, s->layers_fd, name) < 0)
		return err_set(e, -errno, "rename layer %s: %m", name);
	if (fsync(s->layers_fd) < 0)
		return err_set(e, -errno, "write layer %s to the disk: %m", name);
	return 0;
}

void layer_store_abandon(const struct layer_store *s, uint64_t number)
{
	struct err ignored = ERR_NONE; /* the next start tries again */
	char name[NAME_BYTES];

	name_of(number, name);
	(void)!tree_delete(s->tmp_fd, name, &ignored);
}

static int remove_named(const struct layer_store *s, const char *name, struct err *e)
{
	char going[NAME_BYTES + 1];
	int r;

	snprintf(going, sizeof(going), "-%s", name);
	r = tree_delete(s->tmp_fd, going, e); /* of an attempt that was killed */
	if (r < 0)
		return r;
	if (renameat(s->layers_fd, name, s->tmp_fd, going) < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "remove layer %s: %m", name);
	return tree_delete(s->tmp_fd, going, e);
}

int layer_store_remove(const struct layer_store *s, uint64_t number, struct err *e)
{
	char name[NAME_BYTES];
	int r;

	name_of(number, name);
	r = tree_delete(s->tmp_fd, name, e);
	return r == 0 ? remove_named(s, name, e) : r;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Calls `fn` with every name. */
typedef int each_fn(void *arg, const char *name, struct err *e);

static int each(int dir_fd, each_fn *fn, void *arg, struct err *e)
{
	int r = 0, fd = openat(dir_fd, ".", DIR_FLAGS);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!d) {
		fd_close(fd);
		return err_set(e, -errno, "open a directory: %m");
	}
	while (r == 0 && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			r = fn(arg, entry->d_name, e);
	closedir(d);
	return r;
}

struct cleaning {
	const struct layer_store *store;
	const uint64_t *keep;
	size_t n;
	uint64_t next;
};

/* Only what is named like a layer is one. */
static int clean_layer(void *arg, const char *name, struct err *e)
{
	const struct cleaning *c = arg;
	uint64_t number;

	if (strlen(name) >= NAME_BYTES || !num_parse_u64(view_of(name), &number) ||
	    number >= c->next ||
	    (c->n > 0 && bsearch(&number, c->keep, c->n, sizeof(number), by_value)))
		return 0;
	return remove_named(c->store, name, e);
}

/* A file is locked by whoever writes it, until it gets its final name. */
static int clean_file(int tmp_fd, const char *name)
{
	osb_cleanup(fd_closep) int fd = -1;

	fd = openat(tmp_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		(void)unlinkat(tmp_fd, name, 0);
	return 0;
}

/* "N" is being made, "-N" is being removed. */
static int clean_tmp(void *arg, const char *name, struct err *e)
{
	const struct cleaning *c = arg;
	uint64_t number;

	if (!num_parse_u64(view_of(name[0] == '-' ? name + 1 : name), &number))
		return clean_file(c->store->tmp_fd, name);
	return number < c->next ? tree_delete(c->store->tmp_fd, name, e) : 0;
}

int layer_store_clean(const struct layer_store *s, const uint64_t *keep, size_t n, uint64_t next,
		      struct err *e)
{
	struct cleaning c = {s, keep, n, next};
	int r = keep ? each(s->layers_fd, clean_layer, &c, e) : 0;

	return r == 0 ? each(s->tmp_fd, clean_tmp, &c, e) : r;
}

/* Paths that are too long are not followed: they count, what lies below them does not. */
int layer_store_count(int dir_fd, struct layer_totals *ret, struct err *e)
{
	osb_cleanup(tree_walk_closep) struct tree_walk *w = NULL;
	int r, fd = openat(dir_fd, ".", DIR_FLAGS);
	struct layer_totals sum = {0};
	struct tree_entry t;

	if (fd < 0)
		return err_set(e, -errno, "open a directory: %m");
	r = tree_walk_open(fd, &w, e);
	while (r >= 0 && (r = tree_walk_next(w, &t, e)) > 0) {
		struct stat st;

		if (t.leaving || fstatat(t.dir_fd, t.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		sum.files++;
		if (S_ISREG(st.st_mode))
			layer_totals_add(&sum, (uint64_t)st.st_size);
		if (S_ISDIR(st.st_mode) && t.path.len < TREE_PATH_MAX - 256)
			r = tree_walk_enter(w, e);
		/* Somebody else may be at work in there. */
		if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
			r = 0;
	}
	if (r == 0)
		*ret = sum;
	return r;
}

int layer_store_totals(const struct layer_store *s, uint64_t number, struct layer_totals *ret,
		       struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct layer_totals sum = {0};
	char name[NAME_BYTES];
	int r;

	name_of(number, name);
	fd = openat(s->layers_fd, name, DIR_FLAGS);
	if (fd < 0)
		return err_set(e, -errno, "open layer %s: %m", name);
	r = layer_store_count(fd, &sum, e);
	if (r < 0)
		return r;
	/* Its own directories are none of its files. */
	sum.files -= faccessat(fd, "root", F_OK, 0) == 0;
	sum.files -= faccessat(fd, "usr", F_OK, 0) == 0;
	*ret = sum;
	return 0;
}
