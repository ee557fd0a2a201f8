/*
 * image/layer_apply.c - what each kind of an archive's members becomes.
 */
#include "image/layer_apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "codec/tar_reader.h"
#include "image/layer_dirs.h"
#include "image/layer_path.h"
#include "image/layer_xattr.h"
#include "image/tree_delete.h"

#define TARGET_MAX 4095 /* of a symbolic link */

struct layer_apply {
	struct layer_dirs dirs;
	struct layer_limits limits;
	struct layer_totals totals;
	struct tar_reader *tar;
	char path[LAYER_PATH_MAX + 1]; /* of the member */

	/* The file whose content comes; -1: what comes is of no use. */
	int file_fd;
	bool truncate; /* it may end with a hole */
	uint64_t size;
	uint32_t mode, uid, gid;
	struct timespec times[2];
	struct layer_xattrs xattrs;
};

/* Where the member belongs. */
struct place {
	int dir_fd;
	const char *name;
};

static bool is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

static bool owners_matter(const struct layer_apply *a)
{
	return !(a->dirs.flags & LAYER_ROOTLESS) && (a->uid != 0 || a->gid != 0);
}

/* Of what has a name but no fd: links and pipes. */
static int finish_named(struct layer_apply *a, struct place p, struct err *e)
{
	if (owners_matter(a) && fchownat(p.dir_fd, p.name, a->uid, a->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "chown '%.100s': %m", a->path);
	if (utimensat(p.dir_fd, p.name, a->times, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "set the time of '%.100s': %m", a->path);
	return 0;
}

/* ---- kinds of members ---- */

/* Root's own and with its final permissions from the start: most files need nothing more. */
static int begin_file(struct layer_apply *a, const struct tar_member *m, struct place p,
		      struct err *e)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int r, fd = openat(p.dir_fd, p.name, flags, m->mode & 0777);

	if (fd < 0 && errno == EEXIST) {
		r = tree_delete(p.dir_fd, p.name, e);
		if (r < 0)
			return r;
		fd = openat(p.dir_fd, p.name, flags, m->mode & 0777);
	}
	if (fd < 0)
		return err_set(e, -errno, "create '%.100s': %m", a->path);
	a->file_fd = fd;
	a->size = m->size;
	a->truncate = m->sparse;
	return 0;
}

static int make_dir(struct layer_apply *a, const struct tar_member *m, struct place p,
		    struct err *e)
{
	struct layer_dir_note n = {m->mode, a->uid, a->gid, (uint32_t)a->times[1].tv_nsec,
				   a->times[1].tv_sec};
	osb_cleanup(fd_closep) int fd = -1;
	int r = *a->path ? layer_dirs_make(&a->dirs, p.dir_fd, p.name, e) : 0;

	if (r == 0 && a->xattrs.kept.len > 0) {
		fd = openat(p.dir_fd, *a->path ? p.name : ".",
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? err_set(e, -errno, "open '%.100s': %m", a->path)
			   : layer_xattrs_set(&a->xattrs, fd, e);
	}
	return r == 0 ? layer_dirs_note(&a->dirs, a->path, &n, e) : r;
}

static int make_symlink(struct layer_apply *a, const struct tar_member *m, struct place p,
			struct err *e)
{
	int r;

	if (m->target.len == 0 || m->target.len > TARGET_MAX)
		return err_set(e, -EBADMSG, "the symbolic link '%.100s' has no usable target",
			       a->path);
	r = tree_delete(p.dir_fd, p.name, e);
	if (r == 0 && symlinkat(m->target.p, p.dir_fd, p.name) < 0)
		r = err_set(e, -errno, "link '%.100s': %m", a->path);
	return r == 0 ? finish_named(a, p, e) : r;
}

/* Something of this layer that is really there; *ret_fd is a directory of the caller's. */
static int find_link_target(struct layer_apply *a, const char *path, int *ret_fd,
			    const char **ret_name, struct stat *ret_st, struct err *e)
{
	size_t len;
	const char *name = layer_path_split(path, &len);
	int fd = -1, r = layer_dirs_open(&a->dirs, path, len, &fd, e);

	if (r < 0)
		return r;
	if (fstatat(fd, name, ret_st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(ret_st->st_mode) ||
	    is_whiteout(ret_st))
		return err_set(e, -EBADMSG,
			       "'%.60s' is linked to '%.60s', which is no file of the layer",
			       a->path, path);
	*ret_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	*ret_name = name;
	return *ret_fd < 0 ? err_set(e, -errno, "dup: %m") : 0;
}

static int make_hardlink(struct layer_apply *a, const struct tar_member *m, struct err *e)
{
	osb_cleanup(fd_closep) int target_fd = -1;
	char target[LAYER_PATH_MAX + 1];
	const char *target_name = NULL, *name;
	struct stat st, there;
	size_t len;
	int dir_fd, r;

	r = layer_path_clean(m->target, target, e);
	if (r == 0)
		r = find_link_target(a, target, &target_fd, &target_name, &st, e);
	name = layer_path_split(a->path, &len);
	if (r == 0)
		r = layer_dirs_open(&a->dirs, a->path, len, &dir_fd, e);
	if (r < 0)
		return r;
	if (fstatat(dir_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0) {
		if (there.st_ino == st.st_ino && there.st_dev == st.st_dev)
			return 0;
		r = tree_delete(dir_fd, name, e);
	}
	if (r == 0 && linkat(target_fd, target_name, dir_fd, name, 0) < 0)
		r = err_set(e, errno == ENOENT ? -EBADMSG : -errno, "link '%.100s': %m", a->path);
	return r;
}

static int make_fifo(struct layer_apply *a, const struct tar_member *m, struct place p,
		     struct err *e)
{
	int r = tree_delete(p.dir_fd, p.name, e);

	if (r == 0 && mknodat(p.dir_fd, p.name, S_IFIFO | (m->mode & 0777), 0) < 0)
		r = err_set(e, -errno, "make the pipe '%.100s': %m", a->path);
	return r == 0 ? finish_named(a, p, e) : r;
}

/* What this very layer has brought stays: a whiteout is about the layers below. */
static int make_whiteout(struct layer_apply *a, int dir_fd, const char *name, struct err *e)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return S_ISDIR(st.st_mode) ? layer_dirs_make_opaque(&a->dirs, dir_fd, name, e) : 0;
	if (mknodat(dir_fd, name, S_IFCHR, makedev(0, 0)) < 0)
		return err_set(e, -errno, "make the whiteout '%.100s': %m", a->path);
	return 0;
}

static int make_plain(struct layer_apply *a, const struct tar_member *m, struct place p,
		      struct err *e)
{
	switch (m->kind) {
	case TAR_FILE:
		return begin_file(a, m, p, e);
	case TAR_DIR:
		return make_dir(a, m, p, e);
	case TAR_SYMLINK:
		return make_symlink(a, m, p, e);
	case TAR_FIFO:
		return make_fifo(a, m, p, e);
	default: /* devices: a sandbox has its own, and none of these would work */
		return 0;
	}
}

/* ---- what the reader tells ---- */

static int count(struct layer_apply *a, const struct tar_member *m, struct err *e)
{
	if (++a->totals.files > a->limits.max_files)
		return err_set(e, -EFBIG, "there are more than %ju files",
			       (uintmax_t)a->limits.max_files);
	if (m->size > a->limits.max_bytes || a->totals.bytes > a->limits.max_bytes - m->size)
		return err_set(e, -EFBIG, "the files have more than %ju bytes",
			       (uintmax_t)a->limits.max_bytes);
	a->totals.bytes += m->size;
	return 0;
}

static int take_facts(struct layer_apply *a, const struct tar_member *m, struct err *e)
{
	if (!(a->dirs.flags & LAYER_ROOTLESS) && (m->uid > LAYER_IDS_MAX || m->gid > LAYER_IDS_MAX))
		return err_set(e, -EBADMSG, "'%.100s' belongs to %ju:%ju; ids end at %d", a->path,
			       (uintmax_t)m->uid, (uintmax_t)m->gid, LAYER_IDS_MAX);
	a->mode = m->mode;
	a->uid = (uint32_t)m->uid;
	a->gid = (uint32_t)m->gid;
	a->times[0] = a->times[1] =
		(struct timespec){.tv_sec = m->mtime_s, .tv_nsec = (long)m->mtime_ns};
	return layer_xattrs_keep(&a->xattrs, m->xattrs, m->xattrs_n, e);
}

static int take_member(struct layer_apply *a, const struct tar_member *m, struct err *e)
{
	enum layer_name kind = LAYER_NAME_PLAIN;
	const char *name;
	struct place p;
	size_t len;
	int r = layer_path_clean(m->path, a->path, e);

	p.name = layer_path_split(a->path, &len);
	name = p.name;
	if (r == 0 && !(a->dirs.flags & LAYER_PLAIN))
		r = layer_path_kind(a->path, &kind, &name, e);
	if (r < 0 || kind == LAYER_NAME_NOTE)
		return r;
	if (!*a->path && m->kind != TAR_DIR)
		return err_set(e, -EBADMSG, "a file of the archive has no name");
	r = count(a, m, e);
	if (r == 0)
		r = take_facts(a, m, e);
	if (r == 0 && kind == LAYER_NAME_PLAIN && m->kind == TAR_HARDLINK)
		return make_hardlink(a, m, e);
	if (r == 0)
		r = layer_dirs_open(&a->dirs, a->path, len, &p.dir_fd, e);
	if (r < 0)
		return r;
	if (kind == LAYER_NAME_OPAQUE)
		return layer_dirs_make_opaque(&a->dirs, p.dir_fd, ".", e);
	if (kind == LAYER_NAME_WHITEOUT)
		return make_whiteout(a, p.dir_fd, name, e);
	return make_plain(a, m, p, e);
}

static int on_member(void *arg, const struct tar_member *m, struct err *e)
{
	struct layer_apply *a = arg;

	a->file_fd = fd_close(a->file_fd);
	return take_member(a, m, e);
}

static int on_content(void *arg, uint64_t at, struct view bytes, struct err *e)
{
	struct layer_apply *a = arg;

	while (a->file_fd >= 0 && bytes.len > 0) {
		ssize_t n = pwrite(a->file_fd, bytes.p, bytes.len, (off_t)at);

		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "write '%.100s': %m", a->path);
		if (n > 0) {
			at += (uint64_t)n;
			bytes = view_skip(bytes, (size_t)n);
		}
	}
	return 0;
}

/* In this order: new owners take special bits and capabilities away. */
static int on_member_end(void *arg, struct err *e)
{
	struct layer_apply *a = arg;
	osb_cleanup(fd_closep) int fd = take_fd(a->file_fd);
	int r = 0;

	if (fd < 0)
		return 0;
	if (a->truncate && ftruncate(fd, (off_t)a->size) < 0)
		return err_set(e, -errno, "write '%.100s': %m", a->path);
	if (owners_matter(a) && fchown(fd, a->uid, a->gid) < 0)
		return err_set(e, -errno, "chown '%.100s': %m", a->path);
	if ((a->mode & 07000) && fchmod(fd, a->mode) < 0)
		return err_set(e, -errno, "chmod '%.100s': %m", a->path);
	if (a->xattrs.kept.len > 0)
		r = layer_xattrs_set(&a->xattrs, fd, e);
	if (r == 0 && futimens(fd, a->times) < 0)
		r = err_set(e, -errno, "set the time of '%.100s': %m", a->path);
	return r;
}

static const struct tar_reader_ops reader_ops = {on_member, on_content, on_member_end};

int layer_apply_new(int root_fd, unsigned flags, const struct layer_limits *limits,
		    struct layer_apply **ret, struct err *e)
{
	osb_cleanup(layer_apply_freep) struct layer_apply *a = mem_new(struct layer_apply);
	int r;

	a->file_fd = -1;
	a->limits = *limits;
	layer_xattrs_init(&a->xattrs);
	a->tar = tar_reader_new(&reader_ops, a);
	r = layer_dirs_init(&a->dirs, root_fd, flags, e);
	if (r < 0)
		return r;
	*ret = take_ptr(a);
	return 0;
}

void layer_apply_free(struct layer_apply *a)
{
	if (!a)
		return;
	fd_close(a->file_fd);
	tar_reader_free(a->tar);
	layer_dirs_done(&a->dirs);
	layer_xattrs_done(&a->xattrs);
	free(a);
}

int layer_apply_feed(struct layer_apply *a, struct view bytes, struct err *e)
{
	return tar_reader_feed(a->tar, bytes, e);
}

int layer_apply_finish(struct layer_apply *a, struct layer_totals *ret, struct err *e)
{
	int r = tar_reader_finish(a->tar, e);

	if (r == 0)
		r = layer_dirs_settle(&a->dirs, e);
	if (r == 0)
		*ret = a->totals;
	return r;
}
