/*
 * image/layer_dirs.c - the way to an entry, name by name, and the last word on directories.
 */
#include "image/layer_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/rand.h"
#include "image/layer_apply.h"
#include "image/tree_delete.h"
#include "sys/openat2.h"

#define NOTES_BATCH 65536

#define DIR_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Never with a name where the disk can do that: a volume may be in use, and its sandboxes must not
 * get hold of the file. */
static int open_unnamed(int dir_fd)
{
	char name[RAND_HEX_LEN + 2] = "."; /* for a moment */
	int fd = openat(dir_fd, ".", O_RDWR | O_TMPFILE | O_EXCL | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	rand_hex(name + 1);
	fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0 && unlinkat(dir_fd, name, 0) < 0)
		return fd_close(fd);
	return fd;
}

int layer_dirs_init(struct layer_dirs *d, int root_fd, unsigned flags, struct err *e)
{
	*d = (struct layer_dirs){.root_fd = root_fd, .flags = flags, .last_fd = -1, .notes_fd = -1};
	buf_init(&d->last, LAYER_PATH_MAX + 1);
	buf_init(&d->notes, NOTES_BATCH + LAYER_PATH_MAX + 64);
	d->notes_fd = open_unnamed(root_fd);
	if (d->notes_fd < 0)
		return err_set(e, -errno, "create a temporary file: %m");
	return 0;
}

void layer_dirs_done(struct layer_dirs *d)
{
	layer_dirs_forget(d);
	buf_done(&d->last);
	buf_done(&d->notes);
	d->notes_fd = fd_close(d->notes_fd);
}

void layer_dirs_forget(struct layer_dirs *d)
{
	d->last_fd = fd_close(d->last_fd);
	buf_clear(&d->last);
}

int layer_dirs_make_opaque(struct layer_dirs *d, int dir_fd, const char *name, struct err *e)
{
	const char *mark =
		d->flags & LAYER_ROOTLESS ? "user.overlay.opaque" : "trusted.overlay.opaque";
	osb_cleanup(fd_closep) int fd = -1;

	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fsetxattr(fd, mark, "y", 1, 0) < 0)
		return err_set(e, -errno, "make '%s' opaque: %m", name);
	return 0;
}

static int replace_whiteout(struct layer_dirs *d, int dir_fd, const char *name, struct err *e)
{
	if (unlinkat(dir_fd, name, 0) < 0 || mkdirat(dir_fd, name, 0755) < 0)
		return err_set(e, -errno, "mkdir '%s': %m", name);
	return layer_dirs_make_opaque(d, dir_fd, name, e);
}

static bool is_whiteout(const struct stat *st, unsigned flags)
{
	return !(flags & LAYER_PLAIN) && S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

int layer_dirs_make(struct layer_dirs *d, int dir_fd, const char *name, struct err *e)
{
	struct stat st;
	int r;

	if (mkdirat(dir_fd, name, 0755) == 0)
		return 0;
	if (errno != EEXIST || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "mkdir '%s': %m", name);
	if (S_ISDIR(st.st_mode))
		return 0;
	if (is_whiteout(&st, d->flags))
		return replace_whiteout(d, dir_fd, name, e);
	r = tree_delete(dir_fd, name, e);
	if (r == 0 && mkdirat(dir_fd, name, 0755) < 0)
		r = err_set(e, -errno, "mkdir '%s': %m", name);
	return r;
}

/* One step of the way.  What is no directory there stays what it is: nothing goes through it. */
static int step(struct layer_dirs *d, int dir_fd, const char *name, int *ret, struct err *e)
{
	struct stat st;
	int r = 0, fd = openat(dir_fd, name, DIR_FLAGS);

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    !is_whiteout(&st, d->flags))
			return err_set(e, -EBADMSG, "a path goes through '%s', which is a %s", name,
				       S_ISLNK(st.st_mode) ? "symbolic link" : "file");
		r = layer_dirs_make(d, dir_fd, name, e);
		if (r < 0)
			return r;
		fd = openat(dir_fd, name, DIR_FLAGS);
	}
	if (fd < 0)
		return err_set(e, -errno, "open '%s': %m", name);
	*ret = fd;
	return 0;
}

/* Names are taken from the path that is in `last`. */
static int walk(struct layer_dirs *d, int *ret, struct err *e)
{
	osb_cleanup(fd_closep) int fd = openat(d->root_fd, ".", DIR_FLAGS);
	struct view rest = buf_view(&d->last), name;

	if (fd < 0)
		return err_set(e, -errno, "open the layer: %m");
	while (view_split(&rest, '/', &name)) {
		char text[NAME_MAX + 1];
		int next, r;

		memcpy(text, name.p, name.len);
		text[name.len] = '\0';
		r = step(d, fd, text, &next, e);
		if (r < 0)
			return r;
		fd_close(fd);
		fd = next;
	}
	*ret = take_fd(fd);
	return 0;
}

int layer_dirs_open(struct layer_dirs *d, const char *path, size_t len, int *ret, struct err *e)
{
	int fd, r = 0;

	if (d->last_fd >= 0 && view_eq(buf_view(&d->last), view_mem(path, len))) {
		*ret = d->last_fd;
		return 0;
	}
	layer_dirs_forget(d);
	if (buf_append(&d->last, path, len) < 0)
		return err_set(e, -EBADMSG, "a path is too long");
	/* All at once when it is there already; "" is the layer itself. */
	fd = openat2_beneath(d->root_fd, len > 0 ? buf_str(&d->last) : ".", DIR_FLAGS, 0);
	if (fd < 0)
		r = walk(d, &fd, e);
	if (r < 0) {
		buf_clear(&d->last);
		return r;
	}
	d->last_fd = fd;
	*ret = fd;
	return 0;
}

static int write_notes(struct layer_dirs *d, struct err *e)
{
	while (d->notes.len > 0) {
		ssize_t n = write(d->notes_fd, buf_view(&d->notes).p, d->notes.len);

		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "write a temporary file: %m");
		if (n > 0)
			buf_consume(&d->notes, (size_t)n);
	}
	return 0;
}

/* The note, the path's length, the path and a NUL. */
int layer_dirs_note(struct layer_dirs *d, const char *path, const struct layer_dir_note *n,
		    struct err *e)
{
	size_t len = strlen(path);

	if (buf_append(&d->notes, n, sizeof(*n)) < 0 ||
	    buf_append(&d->notes, &len, sizeof(len)) < 0 ||
	    buf_append(&d->notes, path, len + 1) < 0)
		return err_set(e, -EBADMSG, "a path is too long");
	return d->notes.len < NOTES_BATCH ? 0 : write_notes(d, e);
}

static int settle_one(struct layer_dirs *d, const char *path, const struct layer_dir_note *n,
		      struct err *e)
{
	struct timespec times[2] = {{n->mtime_s, n->mtime_ns}, {n->mtime_s, n->mtime_ns}};
	osb_cleanup(fd_closep) int fd = -1;

	fd = openat2_beneath(d->root_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
			     0);
	/* It became something else later on. */
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return 0;
	if (fd < 0)
		return err_set(e, fd, "open '%.100s': %s", path, strerror(-fd));
	if (!(d->flags & LAYER_ROOTLESS) && fchown(fd, n->uid, n->gid) < 0)
		return err_set(e, -errno, "chown '%.100s': %m", path);
	if (fchmod(fd, n->mode) < 0 || futimens(fd, times) < 0)
		return err_set(e, -errno, "chmod '%.100s': %m", path);
	return 0;
}

/* Settles what is whole in `notes`. */
static int settle_notes(struct layer_dirs *d, struct err *e)
{
	struct layer_dir_note n;
	size_t len, head = sizeof(n) + sizeof(len);
	int r = 0;

	while (r == 0 && d->notes.len >= head) {
		const char *p = buf_view(&d->notes).p;

		memcpy(&n, p, sizeof(n));
		memcpy(&len, p + sizeof(n), sizeof(len));
		if (len > LAYER_PATH_MAX)
			return err_set(e, -EBADMSG, "a temporary file was changed");
		if (d->notes.len < head + len + 1)
			break;
		if (p[head + len] != '\0')
			return err_set(e, -EBADMSG, "a temporary file was changed");
		r = settle_one(d, p + head, &n, e);
		buf_consume(&d->notes, head + len + 1);
	}
	return r;
}

int layer_dirs_settle(struct layer_dirs *d, struct err *e)
{
	ssize_t n = 1;
	int r = write_notes(d, e);

	layer_dirs_forget(d);
	if (r == 0 && lseek(d->notes_fd, 0, SEEK_SET) < 0)
		r = err_set(e, -errno, "read a temporary file: %m");
	while (r == 0 && n > 0) {
		char *p = buf_reserve(&d->notes, NOTES_BATCH);

		n = p ? read(d->notes_fd, p, NOTES_BATCH) : -1;
		if (n < 0)
			return err_set(e, -errno, "read a temporary file: %m");
		buf_commit(&d->notes, (size_t)n);
		r = settle_notes(d, e);
	}
	return r;
}
