/*
 * image/tree_walk.c - one open directory and a small piece of its listing for every level.
 */
#include "image/tree_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"

#define LISTING 4096

struct level {
	int fd;
	size_t path_len; /* of the directory's own path */
	char *listing;
	size_t len, pos;
	bool ended;
};

struct tree_walk {
	struct level *levels;
	size_t n, cap;
	struct buf path;
	char name[NAME_MAX + 1]; /* told last */
	bool leave;		 /* the last level was told to end: it goes at the next call */
};

static void push(struct tree_walk *w, int fd)
{
	if (w->n == w->cap) {
		w->cap = w->cap ? w->cap * 2 : 16;
		w->levels = mem_resize(w->levels, w->cap, sizeof(w->levels[0]));
	}
	w->levels[w->n++] =
		(struct level){.fd = fd, .path_len = w->path.len, .listing = mem_alloc(LISTING)};
}

static void pop(struct tree_walk *w)
{
	struct level *l = &w->levels[--w->n];

	fd_close(l->fd);
	free(l->listing);
}

int tree_walk_open(int fd, struct tree_walk **ret, struct err *e)
{
	struct tree_walk *w;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode)) {
		fd_close(fd);
		return err_set(e, -ENOTDIR, "this is no directory");
	}
	w = mem_new(struct tree_walk);
	buf_init(&w->path, TREE_PATH_MAX + 1);
	push(w, fd);
	*ret = w;
	return 0;
}

void tree_walk_close(struct tree_walk *w)
{
	if (!w)
		return;
	while (w->n > 0)
		pop(w);
	free(w->levels);
	buf_done(&w->path);
	free(w);
}

/* The next name of the directory; NULL at its end. */
static int read_name(struct level *l, const char **ret, struct err *e)
{
	for (;;) {
		const struct dirent64 *d;

		if (l->pos == l->len) {
			ssize_t n = l->ended ? 0 : getdents64(l->fd, l->listing, LISTING);

			if (n < 0)
				return err_set(e, -errno, "read a directory: %m");
			l->pos = 0;
			l->len = (size_t)n;
			l->ended = n == 0;
			if (n == 0) {
				*ret = NULL;
				return 0;
			}
		}
		d = (const void *)(l->listing + l->pos);
		l->pos += d->d_reclen;
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0) {
			*ret = d->d_name;
			return 0;
		}
	}
}

static int set_path(struct tree_walk *w, const struct level *l, const char *name, struct err *e)
{
	int r = 0;

	buf_truncate(&w->path, l->path_len);
	if (name && l->path_len > 0)
		r = buf_append_char(&w->path, '/');
	if (r == 0 && name)
		r = buf_append_str(&w->path, name);
	/* One byte less than the ceiling, for the NUL. */
	if (r < 0 || w->path.len > TREE_PATH_MAX)
		return err_set(e, -ENAMETOOLONG, "a path is longer than %d bytes", TREE_PATH_MAX);
	return 0;
}

int tree_walk_next(struct tree_walk *w, struct tree_entry *ret, struct err *e)
{
	struct level *l;
	const char *name;
	int r;

	if (w->leave)
		pop(w);
	w->leave = false;
	if (w->n == 0)
		return 0;
	l = &w->levels[w->n - 1];
	r = read_name(l, &name, e);
	if (r == 0)
		r = set_path(w, l, name, e);
	if (r < 0)
		return r;
	memcpy(w->name, name ? name : ".", strlen(name ? name : ".") + 1);
	w->leave = !name;
	*ret = (struct tree_entry){
		.dir_fd = l->fd,
		.name = w->name,
		.path = {buf_str(&w->path), w->path.len},
		.depth = w->n,
		.leaving = !name,
	};
	return 1;
}

int tree_walk_enter(struct tree_walk *w, struct err *e)
{
	struct level *l = &w->levels[w->n - 1];
	int fd = openat(l->fd, w->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, -errno, "open '%s': %m", w->name);
	push(w, fd);
	return 0;
}
