/*
 * image/layer_pack.c - one entry of a directory, one member of an archive.
 */
#include "image/layer_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/tar.h"
#include "codec/tar_pax.h"
#include "image/encoder.h"
#include "image/layer_apply.h"
#include "image/tree_walk.h"

#define CHUNK	     65536
#define HEADER_MAX   (512 * 1024)
#define LINKS_MAX    (16 << 20) /* for the names of files that have several */
#define LINKS_N_MAX  100000
#define PATH_BYTES   (TREE_PATH_MAX + 64)
#define NOBODY	     65534
#define XATTRS_BYTES 65536

struct layer_pack {
	struct encoder *out;
	struct buf header, path;
	struct map *links; /* of device and inode: the first name */
	struct arena names;
	char *chunk, *xattrs;
	struct tree_walk *walk;
	struct layer_totals totals;
};

struct layer_pack *layer_pack_new(struct encoder *out)
{
	struct layer_pack *p = mem_new(struct layer_pack);

	p->out = out;
	buf_init(&p->header, HEADER_MAX);
	buf_init(&p->path, PATH_BYTES);
	arena_init(&p->names, LINKS_MAX);
	p->links = map_new();
	p->chunk = mem_alloc(CHUNK);
	p->xattrs = mem_alloc(2 * XATTRS_BYTES);
	return p;
}

void layer_pack_free(struct layer_pack *p)
{
	if (!p)
		return;
	buf_done(&p->header);
	buf_done(&p->path);
	map_free(p->links);
	arena_done(&p->names);
	free(p->chunk);
	free(p->xattrs);
	tree_walk_close(p->walk);
	free(p);
}

static int flush(struct layer_pack *p, struct err *e)
{
	int r = encoder_write(p->out, buf_view(&p->header), e);

	buf_clear(&p->header);
	return r;
}

static int put_header(struct layer_pack *p, const struct tar_entry *t, struct err *e)
{
	if (tar_put_header(&p->header, t) < 0)
		return err_set(e, -EOPNOTSUPP, "'%.100s' does not fit into an archive",
			       buf_str(&p->path));
	return flush(p, e);
}

/* The path below the prefix, with something behind. */
static int set_path(struct layer_pack *p, const char *prefix, struct view path, const char *more,
		    struct err *e)
{
	buf_clear(&p->path);
	if (buf_append_str(&p->path, prefix) < 0 ||
	    (*prefix && path.len > 0 && buf_append_char(&p->path, '/') < 0) ||
	    buf_append_view(&p->path, path) < 0 || buf_append_str(&p->path, more) < 0)
		return err_set(e, -EOPNOTSUPP, "a path is too long");
	return 0;
}

/* ---- extended attributes ---- */

static bool is_foreign(const char *name)
{
	return strcmp(name, "trusted.overlay.redirect") == 0 ||
	       strcmp(name, "trusted.overlay.metacopy") == 0;
}

static bool is_portable(const char *name)
{
	return strcmp(name, "security.capability") == 0 || strncmp(name, "user.", 5) == 0;
}

static bool is_opaque(int fd, const char *name)
{
	char value[2];

	return strcmp(name, "trusted.overlay.opaque") == 0 &&
	       fgetxattr(fd, name, value, sizeof(value)) == 1 && value[0] == 'y';
}

/* Names are in the first half of `xattrs`, values in the second. */
static int read_xattrs(struct layer_pack *p, int fd, struct tar_xattr *ret, size_t *ret_n,
		       bool *ret_opaque, struct err *e)
{
	ssize_t len = flistxattr(fd, p->xattrs, XATTRS_BYTES);
	size_t used = 0, n = 0;

	*ret_opaque = false;
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(p->xattrs + at) + 1) {
		const char *name = p->xattrs + at;
		char *value = p->xattrs + XATTRS_BYTES + used;
		ssize_t got;

		*ret_opaque = *ret_opaque || is_opaque(fd, name);
		if (is_foreign(name))
			return err_set(e, -EOPNOTSUPP, "the layer cannot be written as an archive");
		if (!is_portable(name) || n == TAR_XATTRS_MAX)
			continue;
		got = fgetxattr(fd, name, value, XATTRS_BYTES - used);
		if (got < 0)
			return err_set(e, -errno, "read the attribute %s: %m", name);
		ret[n++] = (struct tar_xattr){view_of(name), view_mem(value, (size_t)got)};
		used += (size_t)got;
	}
	*ret_n = n;
	return 0;
}

/* ---- kinds of entries ---- */

static int put_mark(struct layer_pack *p, const char *prefix, struct view dir, const char *mark,
		    struct err *e)
{
	struct tar_entry t = {.kind = TAR_FILE, .mode = 0600};
	int r = set_path(p, prefix, dir, mark, e);

	if (r < 0)
		return r;
	t.path = buf_view(&p->path);
	return put_header(p, &t, e);
}

/* ".wh.NAME" beside what was there. */
static int put_whiteout(struct layer_pack *p, const char *prefix, const struct tree_entry *entry,
			struct err *e)
{
	char mark[NAME_MAX + sizeof("/.wh.")] = "";
	struct view dir = view_first(entry->path, entry->path.len - strlen(entry->name));

	/* "a/b/" or "": the mark brings its own separator where the prefix needs one. */
	if (dir.len > 0)
		dir.len--;
	snprintf(mark, sizeof(mark), "%s.wh.%s", dir.len > 0 || *prefix ? "/" : "", entry->name);
	return put_mark(p, prefix, dir, mark, e);
}

static int put_dir(struct layer_pack *p, const char *prefix, const struct tree_entry *entry,
		   struct tar_entry *t, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct tar_xattr xattrs[TAR_XATTRS_MAX];
	bool opaque = false;
	int r;

	fd = openat(entry->dir_fd, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open '%s': %m", entry->name);
	r = read_xattrs(p, fd, xattrs, &t->xattrs_n, &opaque, e);
	if (r == 0)
		r = set_path(p, prefix, entry->path, "/", e);
	if (r < 0)
		return r;
	t->kind = TAR_DIR;
	t->path = buf_view(&p->path);
	t->xattrs = xattrs;
	r = put_header(p, t, e);
	t->xattrs = NULL;
	if (r == 0 && opaque)
		r = put_mark(p, prefix, entry->path, "/.wh..wh..opq", e);
	return r;
}

/* Exactly the bytes that the header promised: a file that shrank is filled with zeros. */
static int put_content(struct layer_pack *p, int fd, uint64_t size, struct err *e)
{
	for (uint64_t left = size; left > 0;) {
		size_t want = left < CHUNK ? (size_t)left : CHUNK;
		ssize_t n = read(fd, p->chunk, want);
		int r;

		if (n < 0)
			return err_set(e, -errno, "read a file: %m");
		if (n == 0) {
			memset(p->chunk, 0, want);
			n = (ssize_t)want;
		}
		r = encoder_write(p->out, view_mem(p->chunk, (size_t)n), e);
		if (r < 0)
			return r;
		left -= (uint64_t)n;
	}
	if (tar_put_padding(&p->header, size) < 0)
		return err_set(e, -E2BIG, "no room");
	return flush(p, e);
}

/* The name under which the file was written before, or NULL, which makes this one its name. */
static const char *known_name(struct layer_pack *p, const struct stat *st)
{
	uint64_t key[2] = {st->st_dev, st->st_ino};
	struct view k = view_mem(key, sizeof(key));
	char *name = map_get(p->links, k);

	if (name || st->st_nlink < 2 || map_len(p->links) >= LINKS_N_MAX)
		return name;
	name = arena_str(&p->names, buf_view(&p->path));
	if (name)
		(void)map_put(p->links, k, name);
	return NULL;
}

static int put_file(struct layer_pack *p, const struct tree_entry *entry, const struct stat *st,
		    struct tar_entry *t, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct tar_xattr xattrs[TAR_XATTRS_MAX];
	const char *known = known_name(p, st);
	bool ignored;
	int r;

	if (known) {
		t->kind = TAR_HARDLINK;
		t->target = view_of(known);
		return put_header(p, t, e);
	}
	fd = openat(entry->dir_fd, entry->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open '%s': %m", entry->name);
	r = read_xattrs(p, fd, xattrs, &t->xattrs_n, &ignored, e);
	if (r < 0)
		return r;
	t->kind = TAR_FILE;
	t->size = (uint64_t)st->st_size;
	/* Holes are written as zeros: what claims more would keep us busy for ever. */
	layer_totals_add(&p->totals, t->size);
	if (p->totals.bytes > LAYER_BYTES_MAX)
		return err_set(e, -EFBIG, "the files have more than %ju bytes",
			       (uintmax_t)LAYER_BYTES_MAX);
	t->xattrs = xattrs;
	r = put_header(p, t, e);
	t->xattrs = NULL;
	return r == 0 ? put_content(p, fd, t->size, e) : r;
}

static int put_symlink(struct layer_pack *p, const struct tree_entry *entry, struct tar_entry *t,
		       struct err *e)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(entry->dir_fd, entry->name, target, sizeof(target));
	int r;

	if (n < 0)
		return err_set(e, -errno, "read the link '%s': %m", entry->name);
	t->kind = TAR_SYMLINK;
	t->target = view_mem(target, (size_t)n);
	r = put_header(p, t, e);
	t->target = VIEW_NONE;
	return r;
}

static int put_entry(struct layer_pack *p, const char *prefix, const struct tree_entry *entry,
		     const struct stat *st, struct err *e)
{
	struct tar_entry t = {
		.mode = st->st_mode & 07777,
		.uid = st->st_uid <= LAYER_IDS_MAX ? st->st_uid : NOBODY,
		.gid = st->st_gid <= LAYER_IDS_MAX ? st->st_gid : NOBODY,
		.mtime_s = st->st_mtim.tv_sec,
	};
	int r = set_path(p, prefix, entry->path, "", e);

	if (r < 0)
		return r;
	t.path = buf_view(&p->path);
	switch (st->st_mode & S_IFMT) {
	case S_IFDIR:
		return put_dir(p, prefix, entry, &t, e);
	case S_IFREG:
		return put_file(p, entry, st, &t, e);
	case S_IFLNK:
		return put_symlink(p, entry, &t, e);
	case S_IFIFO:
		t.kind = TAR_FIFO;
		return put_header(p, &t, e);
	case S_IFCHR:
		if (st->st_rdev == makedev(0, 0))
			return put_whiteout(p, prefix, entry, e);
		return 0;
	default: /* sockets and devices mean nothing elsewhere */
		return 0;
	}
}

/* The directory itself, where it stands for one of the archive. */
static int put_top(struct layer_pack *p, int dir_fd, const char *prefix, struct err *e)
{
	struct tree_entry top = {.dir_fd = dir_fd, .name = ".", .path = VIEW_NONE};
	struct stat st;

	if (!*prefix)
		return is_opaque(dir_fd, "trusted.overlay.opaque")
			       ? put_mark(p, "", VIEW(""), ".wh..wh..opq", e)
			       : 0;
	if (fstat(dir_fd, &st) < 0)
		return err_set(e, -errno, "stat: %m");
	top.path = VIEW("");
	return put_entry(p, prefix, &top, &st, e);
}

int layer_pack_add(struct layer_pack *p, int dir_fd, const char *prefix, const char *except,
		   struct err *e)
{
	struct tree_entry t;
	int r = put_top(p, dir_fd, prefix, e);

	tree_walk_close(p->walk);
	p->walk = NULL;
	if (r < 0) {
		fd_close(dir_fd);
		return r;
	}
	r = tree_walk_open(dir_fd, &p->walk, e);
	while (r >= 0 && (r = tree_walk_next(p->walk, &t, e)) > 0) {
		struct stat st;

		if (t.leaving || (except && t.depth == 1 && strcmp(t.name, except) == 0))
			continue;
		if (fstatat(t.dir_fd, t.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return err_set(e, -errno, "stat '%s': %m", t.name);
		r = put_entry(p, prefix, &t, &st, e);
		if (r == 0 && S_ISDIR(st.st_mode))
			r = tree_walk_enter(p->walk, e);
		if (r < 0)
			return err_ctx(e, "'%.100s'", t.path.p);
	}
	return r;
}

int layer_pack_end(struct layer_pack *p, struct err *e)
{
	if (tar_put_end(&p->header) < 0)
		return err_set(e, -E2BIG, "no room");
	return flush(p, e);
}
