/*
 * imager/files_confine.c - what is left of the world before an archive is opened.
 *
 * Root's rights over files stay, for those directories alone that jobs are about: no database, no
 * keys, no host.  No network, no devices, no programs, and no system calls but those of file work.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "imager/files.h"
#include "imager/job.h"
#include "imager/options.h"
#include "sys/allow_list.h"
#include "sys/caps.h"
#include "sys/clone.h"
#include "sys/mountfd.h"
#include "sys/mounttree.h"
#include "sys/namespace.h"
#include "sys/protect.h"
#include "sys/reflink.h"
#include "sys/spread.h"

#define FDS_MAX	   8192 /* two for every directory of the longest path */
#define MEMORY_MAX (160u << 20)

/* Any directory that exists everywhere: only this namespace sees it covered. */
#define STAGE "/proc"

#define HARMLESS (MOUNTFD_NOSUID | MOUNTFD_NODEV | MOUNTFD_NOEXEC)

/* Where things come from (relative: the state directory) and what may be done there. */
static const struct {
	const char *from, *to;
	unsigned attrs;
	mode_t mode; /* if it has to be made */
} shown[] = {
	{"images", FILES_IMAGES, HARMLESS, 0711},
	{"volumes", FILES_VOLUMES, HARMLESS, 0711},
	{"boxes", FILES_BOXES, HARMLESS | MOUNTFD_RDONLY, 0711},
	{"/usr", FILES_USR, HARMLESS | MOUNTFD_RDONLY, 0},
};

static const char *const allowed[] = {
	/* files */
	"copy_file_range",
	"dup",
	"fallocate",
	"faccessat",
	"faccessat2",
	"fadvise64",
	"fchmod",
	"fchmodat",
	"fchown",
	"fchownat",
	"fdatasync",
	"fgetxattr",
	"flistxattr",
	"flock",
	"fsetxattr",
	"fstatfs",
	"fsync",
	"ftruncate",
	"getdents64",
	"linkat",
	"mkdirat",
	"mknodat",
	"newfstatat",
	"open",
	"openat",
	"openat2",
	"pread64",
	"pwrite64",
	"readlinkat",
	"renameat",
	"renameat2",
	"statx",
	"symlinkat",
	"syncfs",
	"unlinkat",
	"utimensat",
	/* whoever asked */
	"getsockopt",
	"recvfrom",
	"sendto",
	/* memory, threads */
	"get_robust_list",
	"sched_getaffinity",
	/* time, chance, signals */
	"tgkill",
};

/* Shared contents; how much of what we said was not heard yet. */
static int allow_some(scmp_filter_ctx ctx)
{
	int r = allow_list_threads(ctx);

	if (r == 0)
		r = allow_list_when(ctx, SCMP_SYS(ioctl), SCMP_A1(SCMP_CMP_EQ, REFLINK_IOCTL, 0));
	if (r == 0)
		r = allow_list_when(ctx, SCMP_SYS(ioctl), SCMP_A1(SCMP_CMP_EQ, TIOCOUTQ, 0));
	return r;
}

static int filter_calls(struct err *e)
{
	return allow_list_apply(allowed, ARRAY_LEN(allowed), allow_some, e);
}

static int open_state_dir(const struct options *o, int *ret, struct err *e)
{
	const char *path = o->state_dir ? o->state_dir : ".";
	int at = o->state_dir ? AT_FDCWD : JOB_DIR_FD;
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, -errno, "open the state directory: %m");
	*ret = fd;
	return 0;
}

/* Thousands of files are made in a layer at once: each in a part of the disk where there is room.
 */
static int prepare_tmp(int state_fd, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;

	if (mkdirat(state_fd, "images/tmp", 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "mkdir images/tmp: %m");
	fd = openat(state_fd, "images/tmp", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open images/tmp: %m");
	(void)spread_children(fd); /* where that means something */
	return 0;
}

static int clone_shown(int state_fd, int *ret, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(shown); i++) {
		if (shown[i].mode && mkdirat(state_fd, shown[i].from, shown[i].mode) < 0 &&
		    errno != EEXIST)
			return err_set(e, -errno, "mkdir %s: %m", shown[i].from);
		r = mountfd_clone(state_fd, shown[i].from, &ret[i], e);
		if (r == 0)
			r = mountfd_shape(ret[i], shown[i].attrs, -1, e);
	}
	return r == 0 ? prepare_tmp(state_fd, e) : r;
}

/* In an empty file system, which then cannot be written itself. */
static int build_root(const int *mounts, struct err *e)
{
	struct mountfd_option o[] = {{"mode", "0755"}, {"size", "64k"}};
	osb_cleanup(fd_closep) int root = -1;
	int r = mountfd_new("tmpfs", o, ARRAY_LEN(o), HARMLESS, &root, e);

	if (r == 0)
		r = mountfd_attach(root, AT_FDCWD, STAGE, e);
	if (r < 0)
		return r;
	if (chdir(STAGE) < 0)
		return err_set(e, -errno, "chdir: %m");
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(shown); i++) {
		const char *to = shown[i].to + 1; /* relative */

		if (mkdir(to, 0755) < 0)
			return err_set(e, -errno, "mkdir %s: %m", to);
		r = mountfd_attach(mounts[i], AT_FDCWD, to, e);
	}
	if (r == 0)
		r = mountfd_shape(root, HARMLESS | MOUNTFD_RDONLY, -1, e);
	if (r == 0)
		r = clone_pivot_root(e);
	if (r == 0 && (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0))
		r = err_set(e, -errno, "leave the old root: %m");
	return r;
}

static int leave_host(const struct options *o, struct err *e)
{
	static const int kept[] = {0, 1, 2, JOB_FD};
	int mounts[ARRAY_LEN(shown)] = {-1, -1, -1, -1};
	osb_cleanup(fd_closep) int state = -1;
	int r = open_state_dir(o, &state, e);

	/* First: the state directory is of the namespace that we leave. */
	if (r == 0)
		r = clone_shown(state, mounts, e);
	if (r == 0 && unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
		r = err_set(e, -errno, "unshare namespaces: %m");
	if (r == 0)
		r = mounttree_make_private(e);
	if (r == 0)
		r = build_root(mounts, e);
	/* Ways back: the old root, the state directory, the detached mounts. */
	state = -1;
	namespace_close_fds(kept, ARRAY_LEN(kept));
	return r;
}

int files_confine(const struct options *o, struct err *e)
{
	static const struct rlimit none, files = {FDS_MAX, FDS_MAX};
	int r = leave_host(o, e);

	if (r < 0)
		return r;
	(void)umask(0);
	if (setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_NOFILE, &files) < 0)
		return err_set(e, -errno, "set limits: %m");
	protect_limit_memory(MEMORY_MAX);
	protect_from_tracing();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "forbid new privileges: %m");
	r = caps_keep_layer_rights(e);
	return r == 0 ? filter_calls(e) : r;
}
