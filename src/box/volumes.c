/*
 * box/volumes.c - finds a volume's directory, copies its mount, attaches it.
 *
 * Both ends are hostile ground: other sandboxes may change a volume meanwhile, and the root was
 * made by a stranger.  Every path is resolved by the kernel below a descriptor, and used by
 * descriptor.
 */
#include "box/volumes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "box/setup.h"
#include "codec/warden_mounts.h"
#include "sys/fsids.h"
#include "sys/mountfd.h"
#include "sys/openat2.h"

/* How names below a directory are resolved. */
typedef int resolve_fn(int dir_fd, const char *path);

static int resolve_plain(int dir_fd, const char *path)
{
	return openat2_beneath(dir_fd, path, O_PATH | O_DIRECTORY, 0);
}

static int resolve_in_root(int dir_fd, const char *path)
{
	return openat2_in_root(dir_fd, path, O_PATH | O_DIRECTORY, 0);
}

/* On the host's side a new directory belongs to whoever owns the one that it is in. */
static int make_like_parent(int parent_fd, const char *name)
{
	struct stat st;

	if (mkdirat(parent_fd, name, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	if (fstat(parent_fd, &st) < 0 ||
	    fchownat(parent_fd, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

/* Inside it belongs to root, whose ids we have at that time. */
static int make_plain(int parent_fd, const char *name)
{
	return mkdirat(parent_fd, name, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

/* One step of the way: the directory that `path` leads to, made if there is none. */
static int open_or_make(int top_fd, int parent_fd, const char *path, const char *name,
			resolve_fn *resolve, int (*make)(int, const char *), int *ret,
			struct err *e)
{
	int r = resolve(top_fd, path);

	if (r == -ENOENT) {
		r = make(parent_fd, name);
		if (r == 0)
			r = resolve(top_fd, path);
		/* There is something that resolves to nothing. */
		if (r == -ENOENT)
			r = -ELOOP;
	}
	if (r < 0)
		return err_set(e, r, "'%s': %s", path,
			       r == -EXDEV   ? "it leads out of the volume"
			       : r == -ELOOP ? "a link that leads nowhere, or is not allowed"
					     : strerror(-r));
	*ret = r;
	return 0;
}

/* The directory `path` below `top_fd`; each prefix is resolved from the top, so that links are
 * judged by where they lead from there. */
static int open_below(int top_fd, const char *path, resolve_fn *resolve,
		      int (*make)(int, const char *), int *ret, struct err *e)
{
	osb_cleanup(fd_closep) int parent = fcntl(top_fd, F_DUPFD_CLOEXEC, 0);
	int whole = resolve(top_fd, *path ? path : ".");

	if (whole >= 0) {
		*ret = whole;
		return 0;
	}
	for (const char *at = path; parent >= 0;) {
		size_t len = strcspn(at, "/");
		char prefix[WARDEN_PATH_MAX];
		int fd, r;

		snprintf(prefix, sizeof(prefix), "%.*s", (int)(at - path + (ptrdiff_t)len), path);
		r = open_or_make(top_fd, parent, prefix, prefix + (at - path), resolve, make, &fd,
				 e);
		if (r < 0)
			return r;
		fd_close(parent);
		parent = fd;
		if (at[len] == '\0')
			break;
		at += len + 1;
	}
	if (parent < 0)
		return err_set(e, -errno, "dup: %m");
	*ret = take_fd(parent);
	return 0;
}

/* People replace a directory as a whole: an allowed path that is something else by now is opened
 * where it lies.  Our copy of its mount keeps the old one alive, so its number is not given away.
 */
static int open_replaced(const struct setup *s, uint64_t number, int *ret, struct err *e)
{
	osb_cleanup(fd_closep) int parent = -1;
	const struct volumes_host *h;
	struct stat st;
	char path[128];

	if (number >= s->hosts_n || !s->hosts[number].name)
		return 0;
	h = &s->hosts[number];
	snprintf(path, sizeof(path), "%s/%" PRIu64, s->parents_dir, number);
	parent = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return err_set(e, -errno, "open %s: %m", path);
	if (fstatat(parent, h->name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0) {
		if (st.st_dev == h->dev && st.st_ino == h->ino)
			return 0;
	} else if (errno == ENOENT) {
		int r = make_like_parent(parent, h->name);

		if (r < 0)
			return err_set(e, r, "make '%s': %s", h->name, strerror(-r));
	}
	*ret = openat(parent, h->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret < 0 ? err_set(e, -errno, "'%s': %m", h->name) : 0;
}

static int open_source(const struct setup *s, const struct warden_volume *v, int *ret,
		       struct err *e)
{
	osb_cleanup(fd_closep) int top = -1;
	char path[128];

	if (v->kind == WARDEN_VOLUME_NAMED)
		snprintf(path, sizeof(path), "%s/%" PRIu64 "/data", s->volumes_dir, v->number);
	else
		snprintf(path, sizeof(path), "%s/%" PRIu64,
			 v->kind == WARDEN_VOLUME_HOST ? s->hosts_dir : s->mounted_dir, v->number);
	if (v->kind == WARDEN_VOLUME_HOST && open_replaced(s, v->number, &top, e) < 0)
		return e->code;
	if (top < 0)
		top = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return err_set(e, -errno, "there is no such volume: %m");
	/* A named volume is written by sandboxes alone, which have no business with links in the
	 * way to a directory of theirs; a host path is arranged by people. */
	return open_below(top, v->sub_path,
			  v->kind == WARDEN_VOLUME_NAMED ? resolve_plain : openat2_dir_below,
			  make_like_parent, ret, e);
}

/* The root itself must stay in sight, and /proc, /sys and /dev are not for volumes, whatever links
 * of the image say: a place is in the root's file system or in that of /usr. */
static bool may_be_covered(int fd)
{
	struct stat st, root, usr;

	if (fstat(fd, &st) < 0 || stat(".", &root) < 0)
		return false;
	if (st.st_dev == root.st_dev)
		return st.st_ino != root.st_ino;
	return lstat("usr", &usr) == 0 && S_ISDIR(usr.st_mode) && st.st_dev == usr.st_dev;
}

/* The volume that this one is mounted in, or -1. */
static int outer_of(const struct setup *s, const struct warden_volume *v)
{
	size_t longest = 0;
	int found = -1;

	for (size_t i = 0; i < s->volumes_n; i++) {
		const char *path = s->volumes[i].mount_path;
		size_t len = strlen(path);

		if (len > longest && strncmp(v->mount_path, path, len) == 0 &&
		    v->mount_path[len] == '/') {
			longest = len;
			found = (int)i;
		}
	}
	return found;
}

/* In another volume no link is followed: others who have it could put one over any place of this
 * sandbox. */
static int find_target(const struct setup *s, const struct warden_volume *v,
		       const struct volumes_copies *m, int *ret, struct err *e)
{
	osb_cleanup(fd_closep) int root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int outer = outer_of(s, v);

	if (outer < 0)
		return open_below(root, v->mount_path + 1, resolve_in_root, make_plain, ret, e);
	return open_below(m->fds[outer], v->mount_path + strlen(s->volumes[outer].mount_path) + 1,
			  resolve_plain, make_plain, ret, e);
}

static int open_target(const struct setup *s, const struct warden_volume *v,
		       const struct volumes_copies *m, int *ret, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	int r = fsids_become(s->id_base, e);

	if (r < 0)
		return r;
	r = find_target(s, v, m, &fd, e);
	if (fsids_restore(e) < 0)
		return e->code;
	/* Links in the sandbox are its own fault, not the volume's. */
	if (r < 0)
		return err_set(e, r == -ELOOP || r == -EXDEV ? -ENOTDIR : r,
			       "no mount point in the sandbox: %s", e->msg);
	if (outer_of(s, v) < 0 && !may_be_covered(fd))
		return err_set(e, -EINVAL, "its mount point is the root, or not in it");
	*ret = take_fd(fd);
	return 0;
}

/* A file system of a program's own (FUSE) may know no mapping; whoever mounted it lets everybody
 * in.
 */
static int shape(const struct setup *s, const struct warden_volume *v, int mount_fd, struct err *e)
{
	unsigned attrs = MOUNTFD_NOSUID | MOUNTFD_NODEV | (v->read_only ? MOUNTFD_RDONLY : 0);
	int r = mountfd_shape_tree(mount_fd, attrs, s->userns_fd, e);

	if (v->kind == WARDEN_VOLUME_MOUNTED && (r == -EINVAL || r == -EPERM))
		return mountfd_shape_tree(mount_fd, attrs, -1, e);
	if (r == -EINVAL || r == -EPERM)
		return err_set(e, -EOPNOTSUPP,
			       "the file system (or one mounted below) cannot map user ids: %s",
			       strerror(-r));
	return r;
}

static size_t depth(const struct warden_volume *v)
{
	size_t n = 0;

	for (const char *p = v->mount_path; *p; p++)
		n += *p == '/';
	return n;
}

int volumes_copy(const struct setup *s, struct volumes_copies *ret, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(ret->fds); i++)
		ret->fds[i] = -1;
	for (size_t i = 0; r == 0 && i < s->volumes_n; i++) {
		osb_cleanup(fd_closep) int source = -1;

		r = open_source(s, &s->volumes[i], &source, e);
		if (r == 0)
			r = mountfd_clone_tree(source, &ret->fds[i], e);
		if (r == 0)
			r = shape(s, &s->volumes[i], ret->fds[i], e);
		if (r < 0)
			err_ctx(e, "volumes[%zu]", i);
	}
	return r;
}

void volumes_copies_done(struct volumes_copies *m)
{
	for (size_t i = 0; i < ARRAY_LEN(m->fds); i++)
		m->fds[i] = fd_close(m->fds[i]);
}

static int attach_level(const struct setup *s, const struct volumes_copies *m, size_t level,
			size_t *done, struct err *e)
{
	for (size_t i = 0; i < s->volumes_n; i++) {
		osb_cleanup(fd_closep) int target = -1;
		int r;

		if (depth(&s->volumes[i]) != level)
			continue;
		(*done)++;
		r = open_target(s, &s->volumes[i], m, &target, e);
		if (r == 0)
			r = mountfd_attach_to(m->fds[i], target, e);
		if (r < 0)
			return err_ctx(e, "volumes[%zu]", i);
	}
	return 0;
}

/* Outer ones first: what is mounted in a volume must not be covered by it. */
int volumes_attach(const struct setup *s, const struct volumes_copies *m, struct err *e)
{
	size_t done = 0;
	int r = 0;

	for (size_t level = 1; r == 0 && done < s->volumes_n; level++)
		r = attach_level(s, m, level, &done, e);
	return r;
}

int volumes_mount(const struct setup *s, struct err *e)
{
	struct volumes_copies m;
	int r = volumes_copy(s, &m, e);

	if (r == 0)
		r = volumes_attach(s, &m, e);
	volumes_copies_done(&m);
	return r;
}
