/*
 * execd/file_walk.c - one level per open directory; each level's names wait in a heap.
 *
 * A heap instead of a sorted list because it is never worked on for long: a name costs a few
 * comparisons when it is read and a few when it is told, however large the directory is.
 */
#include "execd/file_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "execd/file_names.h"

#define READ_BYTES     (32u << 10)
#define MAX_OPEN       64 /* directories kept open; those above are opened again on the way up */
#define MAX_DEPTH      65536
#define MAX_PATH_BYTES (1u << 20)
#define MAX_NAME_BYTES (64u << 20)  /* of one walk, waiting to be told */
#define BATCH_BYTES    (512u << 10) /* of one directory that is being removed */

struct level {
	int fd; /* -1: closed for a while */
	dev_t dev;
	ino_t ino;
	size_t path_len;  /* of the walk's path, up to this directory */
	struct buf names; /* type byte, name, NUL; ... */
	struct buf heap;  /* uint32_t offsets into names, smallest name first */
	bool read;	  /* everything (or a batch) was read */
	bool partial;	  /* ... a batch */
};

struct file_walk {
	struct level *levels;
	size_t levels_n, levels_cap;
	struct buf path;
	size_t name_bytes; /* in all levels */
	unsigned max_depth;
	unsigned flags;
	char chunk[READ_BYTES] __attribute__((aligned(8)));
};

static struct level *top(struct file_walk *w)
{
	return &w->levels[w->levels_n - 1];
}

static const char *path_text(struct file_walk *w, char ret[FILE_NAME_SHORT])
{
	return file_name_short(buf_str(&w->path), ret);
}

/* ---- the heap ---- */

static size_t heap_len(const struct level *l)
{
	return l->heap.len / sizeof(uint32_t);
}

static uint32_t *heap_of(struct level *l)
{
	return (uint32_t *)(void *)(l->heap.mem + l->heap.start);
}

static bool before(const struct level *l, uint32_t a, uint32_t b)
{
	const char *names = buf_view(&l->names).p;

	return strcmp(names + a + 1, names + b + 1) < 0;
}

static int heap_push(struct level *l, uint32_t offset)
{
	size_t i = heap_len(l);
	uint32_t *h;
	int r = buf_append(&l->heap, &offset, sizeof(offset));

	if (r < 0)
		return r;
	h = heap_of(l);
	while (i > 0 && before(l, offset, h[(i - 1) / 2])) {
		h[i] = h[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h[i] = offset;
	return 0;
}

static uint32_t heap_pop(struct level *l)
{
	uint32_t *h = heap_of(l);
	uint32_t smallest = h[0];
	size_t n = heap_len(l) - 1, i = 0;
	uint32_t moved = h[n];

	for (size_t child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && before(l, h[child + 1], h[child]))
			child++;
		if (!before(l, h[child], moved))
			break;
		h[i] = h[child];
	}
	h[i] = moved;
	buf_truncate(&l->heap, n * sizeof(uint32_t));
	return smallest;
}

/* ---- levels ---- */

/* Only the lowest MAX_OPEN directories stay open. */
static void close_distant(struct file_walk *w)
{
	if (w->levels_n > MAX_OPEN) {
		struct level *l = &w->levels[w->levels_n - 1 - MAX_OPEN];

		l->fd = fd_close(l->fd);
	}
}

static int push_level(struct file_walk *w, int fd, struct err *e)
{
	char name[FILE_NAME_SHORT];
	struct stat st;

	if (fstat(fd, &st) < 0 || w->levels_n == MAX_DEPTH) {
		int code = w->levels_n == MAX_DEPTH ? -ELOOP : -errno;

		fd_close(fd);
		errno = -code;
		return err_set(e, code, "'%s': %s", path_text(w, name),
			       code == -ELOOP ? "the tree is too deep" : strerror(-code));
	}
	if (w->levels_n == w->levels_cap) {
		w->levels_cap = w->levels_cap ? 2 * w->levels_cap : 8;
		w->levels = mem_resize(w->levels, w->levels_cap, sizeof(*w->levels));
	}
	w->levels[w->levels_n++] = (struct level){
		.fd = fd,
		.dev = st.st_dev,
		.ino = st.st_ino,
		.path_len = w->path.len,
		.names = BUF_INIT(MAX_NAME_BYTES),
		.heap = BUF_INIT(MAX_NAME_BYTES),
	};
	close_distant(w);
	return 0;
}

static void drop_names(struct file_walk *w, struct level *l)
{
	w->name_bytes -= l->names.len;
	buf_done(&l->names);
	buf_done(&l->heap);
}

static void pop_level(struct file_walk *w)
{
	struct level *l = top(w);

	drop_names(w, l);
	fd_close(l->fd);
	w->levels_n--;
}

/* Opens the directory above the top one again: ".." must lead to where we came from. */
static int reopen_parent(struct file_walk *w, struct err *e)
{
	struct level *child = top(w), *parent = child - 1;
	char name[FILE_NAME_SHORT];
	struct stat st;
	int fd;

	if (w->levels_n < 2 || parent->fd >= 0)
		return 0;
	fd = openat(child->fd, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		int code = -errno;

		fd_close(fd);
		return err_set(e, code, "go up from '%s': %s", path_text(w, name), strerror(-code));
	}
	if (st.st_dev != parent->dev || st.st_ino != parent->ino) {
		fd_close(fd);
		return err_set(e, -ESTALE, "'%s' was moved while its tree was walked",
			       path_text(w, name));
	}
	parent->fd = fd;
	return 0;
}

/* ---- reading ---- */

static int add_name(struct file_walk *w, struct level *l, const struct dirent64 *d)
{
	size_t len = strlen(d->d_name);
	size_t at = l->names.len;
	char *p;

	if (len == 0 || strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
		return 0;
	p = w->name_bytes + len + 2 > MAX_NAME_BYTES ? NULL : buf_reserve(&l->names, len + 2);
	if (!p)
		return -E2BIG;
	p[0] = (char)d->d_type;
	memcpy(p + 1, d->d_name, len + 1);
	buf_commit(&l->names, len + 2);
	w->name_bytes += len + 2;
	return heap_push(l, (uint32_t)at);
}

/* Reads one chunk of names. */
static int read_names(struct file_walk *w, struct level *l, struct err *e)
{
	char name[FILE_NAME_SHORT];
	ssize_t n = getdents64(l->fd, w->chunk, sizeof(w->chunk));

	/* Removed meanwhile, by somebody else: it is empty then. */
	if (n < 0 && errno != ENOENT)
		return err_set(e, -errno, "read directory '%s': %m", path_text(w, name));
	if (n <= 0) {
		l->read = true;
		return 0;
	}
	for (ssize_t at = 0; at < n;) {
		const struct dirent64 *d = (const void *)(w->chunk + at);

		at += d->d_reclen;
		if (add_name(w, l, d) < 0)
			return err_set(e, -E2BIG, "'%s' has too many entries to be put in order",
				       path_text(w, name));
	}
	if (w->flags & FILE_WALK_REMOVING && l->names.len > BATCH_BYTES)
		l->read = l->partial = true;
	return 0;
}

/* The whole directory was told; in a removal there may be more of it. */
static bool read_again(struct file_walk *w, struct level *l)
{
	if (!l->partial || lseek(l->fd, 0, SEEK_SET) < 0)
		return false;
	w->name_bytes -= l->names.len;
	buf_clear(&l->names);
	buf_clear(&l->heap);
	l->read = l->partial = false;
	return true;
}

/* ---- telling ---- */

static int append_name(struct file_walk *w, const struct level *l, const char *name, struct err *e)
{
	char shown[FILE_NAME_SHORT];

	buf_truncate(&w->path, l->path_len);
	/* The root is "/": it already ends with the slash. */
	if ((buf_view(&w->path).p[l->path_len - 1] != '/' && buf_append_char(&w->path, '/') < 0) ||
	    buf_append_str(&w->path, name) < 0)
		return err_set(e, -ENAMETOOLONG, "'%s': the tree is too deep", path_text(w, shown));
	return 0;
}

/* Opens what the directory called a directory.  1, or 0 when there is nothing to go into. */
static int enter(struct file_walk *w, const char *name, struct err *e)
{
	struct level *l = top(w);
	char shown[FILE_NAME_SHORT];
	int fd, r;

	fd = openat(l->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		/* Gone, replaced by something else, or not for us to read. */
		if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP ||
		    (errno == EACCES && !(w->flags & FILE_WALK_REMOVING)))
			return 0;
		return err_set(e, -errno, "open '%s': %m", path_text(w, shown));
	}
	r = push_level(w, fd, e);
	return r < 0 ? r : 1;
}

/* Some file systems do not say what an entry is. */
static unsigned char type_of(const struct level *l, const char *name, unsigned char type)
{
	struct stat st;

	if (type != DT_UNKNOWN)
		return type;
	if (fstatat(l->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return (unsigned char)IFTODT(st.st_mode);
}

/* Tells the smallest name of the top level. */
static int tell_name(struct file_walk *w, struct file_walk_entry *ret, struct err *e)
{
	struct level *l = top(w);
	const char *record = buf_view(&l->names).p + heap_pop(l);
	const char *name = record + 1;
	unsigned char type = type_of(l, name, (unsigned char)record[0]);
	int dir_fd = l->fd;
	int r;

	r = append_name(w, l, name, e);
	if (r < 0)
		return r;
	*ret = (struct file_walk_entry){
		.kind = type == DT_DIR ? FILE_WALK_DIR : FILE_WALK_ENTRY,
		.dir_fd = dir_fd,
		.name = name,
		.may_match = type == DT_REG || type == DT_LNK,
	};
	if (type == DT_DIR && w->levels_n < w->max_depth) {
		r = enter(w, name, e);
		if (r < 0)
			return r;
		/* Removed as a directory even if nobody could look inside. */
		if (r == 0 && w->flags & FILE_WALK_LEAVE)
			ret->kind = FILE_WALK_DIR_END;
	}
	ret->path = buf_view(&w->path);
	return 1;
}

/* The top directory is done: back to the one above. */
static int leave(struct file_walk *w, struct file_walk_entry *ret, struct err *e)
{
	struct level *l = top(w);
	int r;

	if (w->levels_n == 1) {
		pop_level(w);
		return 0;
	}
	buf_truncate(&w->path, l->path_len);
	r = reopen_parent(w, e);
	if (r < 0)
		return r;
	pop_level(w);
	if (!(w->flags & FILE_WALK_LEAVE))
		return -EAGAIN;

	l = top(w);
	*ret = (struct file_walk_entry){
		.kind = FILE_WALK_DIR_END,
		.dir_fd = l->fd,
		.path = buf_view(&w->path),
	};
	/* The name is the end of the path. */
	ret->name = buf_str(&w->path) + l->path_len;
	while (*ret->name == '/')
		ret->name++;
	return 1;
}

int file_walk_next(struct file_walk *w, struct file_walk_entry *ret, struct err *e)
{
	struct level *l;

	if (w->levels_n == 0)
		return 0;
	l = top(w);
	if (!l->read) {
		int r = read_names(w, l, e);

		return r < 0 ? r : -EAGAIN;
	}
	if (heap_len(l) > 0)
		return tell_name(w, ret, e);
	if (read_again(w, l))
		return -EAGAIN;
	return leave(w, ret, e);
}

int file_walk_open(int fd, const char *path, unsigned max_depth, unsigned flags,
		   struct file_walk **ret, struct err *e)
{
	struct file_walk *w = mem_new(struct file_walk);
	int r;

	buf_init(&w->path, MAX_PATH_BYTES);
	w->max_depth = max_depth;
	w->flags = flags;
	r = buf_append_str(&w->path, path);
	if (r < 0) {
		fd_close(fd);
		err_set(e, r, "the path is too long");
	} else {
		r = push_level(w, fd, e);
	}
	if (r < 0) {
		file_walk_close(w);
		return r;
	}
	*ret = w;
	return 0;
}

void file_walk_close(struct file_walk *w)
{
	if (!w)
		return;
	while (w->levels_n > 0)
		pop_level(w);
	free(w->levels);
	buf_done(&w->path);
	free(w);
}
