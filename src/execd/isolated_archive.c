/*
 * execd/isolated_archive.c - an upper directory as tar.gz: the answer of /diff.
 *
 * Deletions are written as image layers have them: ".wh.NAME" for a deleted name, ".wh..wh..opq"
 * in a directory of which nothing below shows.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "codec/gzip.h"
#include "codec/tar.h"
#include "execd/file_walk.h"
#include "execd/isolated_upper.h"
#include "execd/overlay_marks.h"

#define CHUNK	  65536
#define PLAIN_MAX (256 * 1024)
#define OUT_MAX	  (1024 * 1024)

struct archive {
	int out_fd;
	struct gzip gzip;
	struct buf plain; /* tar bytes that are not framed yet */
	struct buf out;
};

static int flush(struct archive *a, struct err *e)
{
	if (gzip_put(&a->gzip, &a->out, buf_view(&a->plain)) < 0)
		return err_set(e, -E2BIG, "the archive's buffer is full");
	buf_clear(&a->plain);
	while (a->out.len > 0) {
		ssize_t n = write(a->out_fd, buf_view(&a->out).p, a->out.len);

		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "write the archive: %m");
		if (n > 0)
			buf_consume(&a->out, (size_t)n);
	}
	return 0;
}

static int put_header(struct archive *a, const struct tar_entry *t, struct err *e)
{
	if (a->plain.len > PLAIN_MAX / 4 && flush(a, e) < 0)
		return e->code;
	return tar_put_header(&a->plain, t) < 0 ? err_set(e, -E2BIG, "a name is too long") : 0;
}

/* Exactly the bytes that the header promised: a file that shrank is filled with zeros. */
static int put_content(struct archive *a, int fd, uint64_t size, struct err *e)
{
	uint64_t left = size;

	while (left > 0) {
		size_t want = left < CHUNK ? (size_t)left : CHUNK;
		char *p = buf_reserve(&a->plain, want);
		ssize_t n = p ? read(fd, p, want) : -1;

		if (n < 0)
			return err_set(e, -errno, "read a file: %m");
		if (n == 0) {
			memset(p, 0, want);
			n = (ssize_t)want;
		}
		buf_commit(&a->plain, (size_t)n);
		left -= (uint64_t)n;
		if (a->plain.len >= CHUNK && flush(a, e) < 0)
			return e->code;
	}
	return tar_put_padding(&a->plain, size) < 0 ? err_set(e, -E2BIG, "no room") : 0;
}

/* An empty file whose name tells: `mark` in front of the path's last name. */
static int put_mark(struct archive *a, struct view dir, const char *mark, const char *name,
		    struct err *e)
{
	osb_cleanup(buf_done) struct buf path = BUF_INIT(65536);
	struct tar_entry t = {.kind = TAR_FILE, .mode = 0600};

	if (buf_append_view(&path, dir) < 0 || buf_append_str(&path, mark) < 0 ||
	    buf_append_str(&path, name) < 0)
		return err_set(e, -ENAMETOOLONG, "a path is too long");
	t.path = buf_view(&path);
	return put_header(a, &t, e);
}

static int put_dir(struct archive *a, const struct file_walk_entry *entry,
		   const struct tar_entry *base, struct err *e)
{
	osb_cleanup(buf_done) struct buf path = BUF_INIT(65536);
	struct tar_entry t = *base;

	if (buf_append_view(&path, t.path) < 0 || buf_append_char(&path, '/') < 0)
		return err_set(e, -ENAMETOOLONG, "a path is too long");
	t.kind = TAR_DIR;
	t.path = buf_view(&path);
	if (put_header(a, &t, e) < 0)
		return e->code;
	if (overlay_is_opaque(entry->dir_fd, entry->name))
		return put_mark(a, t.path, ".wh..wh..opq", "", e);
	return 0;
}

static int put_file(struct archive *a, const struct file_walk_entry *entry,
		    const struct tar_entry *t, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;

	fd = openat(entry->dir_fd, entry->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	/* What vanished meanwhile is not part of the difference any more. */
	if (fd < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "open '%s': %m", entry->name);
	if (put_header(a, t, e) < 0)
		return e->code;
	return put_content(a, fd, t->size, e);
}

static int put_symlink(struct archive *a, const struct file_walk_entry *entry,
		       const struct tar_entry *base, struct err *e)
{
	struct tar_entry t = *base;
	char target[PATH_MAX];
	ssize_t n = readlinkat(entry->dir_fd, entry->name, target, sizeof(target));

	if (n < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "read '%s': %m", entry->name);
	t.kind = TAR_SYMLINK;
	t.target = view_mem(target, (size_t)n);
	return put_header(a, &t, e);
}

static int put_entry(struct archive *a, const struct file_walk_entry *entry, struct err *e)
{
	struct view path = view_skip(entry->path, 1); /* "/a/b" */
	struct stat st;

	if (fstatat(entry->dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "'%s': %m", entry->name);
	struct tar_entry t = {.kind = TAR_FILE,
			      .path = path,
			      .mode = st.st_mode & 07777,
			      .uid = st.st_uid,
			      .gid = st.st_gid,
			      .mtime_s = st.st_mtim.tv_sec};

	if (overlay_is_whiteout(&st))
		return put_mark(a, view_first(path, path.len - strlen(entry->name)), ".wh.",
				entry->name, e);
	switch (st.st_mode & S_IFMT) {
	case S_IFDIR:
		return put_dir(a, entry, &t, e);
	case S_IFREG:
		t.size = (uint64_t)st.st_size;
		return put_file(a, entry, &t, e);
	case S_IFLNK:
		return put_symlink(a, entry, &t, e);
	case S_IFIFO:
		t.kind = TAR_FIFO;
		return put_header(a, &t, e);
	default: /* sockets and devices mean nothing elsewhere */
		return 0;
	}
}

static int put_all(struct archive *a, int upper_fd, struct err *e)
{
	struct file_walk_entry entry;
	struct file_walk *w = NULL;
	int fd = openat(upper_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return err_set(e, -errno, "open the upper directory: %m");
	r = file_walk_open(fd, "/", UINT_MAX, 0, &w, e);
	while (r >= 0 && ((r = file_walk_next(w, &entry, e)) > 0 || r == -EAGAIN)) {
		if (r == -EAGAIN) {
			r = 0;
			continue;
		}
		r = put_entry(a, &entry, e);
	}
	file_walk_close(w);
	return r;
}

int isolated_upper_archive(int upper_fd, int out_fd, struct err *e)
{
	struct archive a = {.out_fd = out_fd};
	int r;

	buf_init(&a.plain, PLAIN_MAX);
	buf_init(&a.out, OUT_MAX);
	r = gzip_begin(&a.gzip, &a.out);
	if (r == 0)
		r = put_all(&a, upper_fd, e);
	if (r == 0 && tar_put_end(&a.plain) < 0)
		r = err_set(e, -E2BIG, "no room");
	if (r == 0)
		r = flush(&a, e);
	if (r == 0 && gzip_end(&a.gzip, &a.out) == 0)
		r = flush(&a, e);
	buf_done(&a.plain);
	buf_done(&a.out);
	return r;
}
