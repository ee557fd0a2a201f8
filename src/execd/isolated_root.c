/*
 * execd/isolated_root.c - the steps from the sandbox's file system to a session's view of it.
 *
 * What stays writable is copied (detached) before the whole tree is made read-only, and attached
 * again afterwards: nothing is writable because it was forgotten.
 */
#include "execd/isolated_root.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "execd/isolated_spec.h"
#include "execd/paths.h"
#include "sys/mountfd.h"
#include "sys/mounttree.h"

#define SAFE (MOUNTFD_NOSUID | MOUNTFD_NODEV)

static const char *const devices[] = {"null", "zero", "full", "random", "urandom", "tty"};

/* The detached copies, between their making and their attaching. */
struct pieces {
	struct isolated_root *root;
	int workspace;
	int tmp;
	int writable[ISOLATED_MAX_PATHS];
	int binds[ISOLATED_MAX_PATHS];
	int devices[ARRAY_LEN(devices)];
};

static int make_private(struct pieces *p, struct err *e)
{
	return mounttree_make_private(e);
}

static int clone_safe(const char *path, unsigned attrs, int *ret, struct err *e)
{
	int r = mounttree_clone(path, ret, e);

	return r < 0 ? r : mounttree_restrict(*ret, "", attrs, e);
}

static int mount_tmpfs(const char *path, const char *mode, unsigned attrs, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct mountfd_option options[] = {{"mode", mode}};
	int r;

	if (access(path, F_OK) < 0)
		return 0;
	r = mountfd_new("tmpfs", options, ARRAY_LEN(options), attrs, &fd, e);
	return r < 0 ? r : mounttree_attach(fd, path, e);
}

/*
 * An upper in memory is mounted where another mount will cover it, so that it is reachable through
 * the overlay alone.
 */
static int make_upper_in_memory(const struct isolated_root *root, const char **ret, struct err *e)
{
	const char *place = strncmp(root->spec->workspace, "/run", 4) == 0 ? "/tmp" : "/run";
	osb_cleanup(fd_closep) int fd = -1;
	struct mountfd_option options[] = {{"mode", "0700"}, {"size", NULL}};
	char size[24], path[16];
	struct stat st;
	int r;

	snprintf(size, sizeof(size), "%" PRIu64, root->upper_max);
	options[1].value = size;
	r = mountfd_new("tmpfs", options, root->upper_max > 0 ? 2 : 1, SAFE, &fd, e);
	if (r == 0)
		r = mounttree_attach(fd, place, e);
	if (r < 0)
		return r;
	if (stat(root->spec->workspace, &st) < 0)
		return err_set(e, -errno, "'%s': %m", root->spec->workspace);
	snprintf(path, sizeof(path), "%s/upper", place);
	if (mkdir(path, 0700) < 0 || chmod(path, st.st_mode & 07777) < 0)
		return err_set(e, -errno, "make %s: %m", path);
	/* In a user namespace that does not know the owner, the session's own id has to do. */
	(void)!chown(path, st.st_uid, st.st_gid);
	snprintf(path, sizeof(path), "%s/work", place);
	if (mkdir(path, 0700) < 0)
		return err_set(e, -errno, "make %s: %m", path);
	*ret = place;
	return 0;
}

static int new_overlay(struct isolated_root *root, int *ret, struct err *e)
{
	struct mountfd_option options[] = {
		{"lowerdir", root->spec->workspace},
		{"upperdir", NULL},
		{"workdir", NULL},
		/* A rename is a copy and a whiteout: an upper that any tool can read. */
		{"redirect_dir", "off"},
		{"metacopy", "off"},
	};
	/* Where only user attributes may be set, the kernel does neither of the last two. */
	static const struct mountfd_option in_userns = {"userxattr", NULL};
	char upper[PATH_MAX], work[PATH_MAX];
	const char *dir = root->upper_dir;

	if (!dir && make_upper_in_memory(root, &dir, e) < 0)
		return e->code;
	if (snprintf(upper, sizeof(upper), "%s/upper", dir) >= PATH_MAX ||
	    snprintf(work, sizeof(work), "%s/work", dir) >= PATH_MAX)
		return err_set(e, -ENAMETOOLONG, "'%s' is too long", dir);
	options[1].value = upper;
	options[2].value = work;
	if (root->userns)
		options[3] = in_userns;
	root->upper_fd = open(upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root->upper_fd < 0)
		return err_set(e, -errno, "open '%s': %m", upper);
	return mountfd_new("overlay", options, root->userns ? 4 : 5, SAFE, ret, e);
}

static int copy_workspace(struct pieces *p, struct err *e)
{
	const struct isolated_spec *s = p->root->spec;

	switch (s->mode) {
	case ISOLATED_OVERLAY:
		return new_overlay(p->root, &p->workspace, e);
	case ISOLATED_RO:
		return clone_safe(s->workspace, SAFE | MOUNTFD_RDONLY, &p->workspace, e);
	default:
		return clone_safe(s->workspace, SAFE, &p->workspace, e);
	}
}

static int copy_paths(struct pieces *p, struct err *e)
{
	const struct isolated_spec *s = p->root->spec;
	int r = 0;

	for (size_t i = 0; i < s->writable_n && r == 0; i++)
		r = clone_safe(s->writable[i], SAFE, &p->writable[i], e);
	for (size_t i = 0; i < s->binds_n && r == 0; i++)
		r = clone_safe(s->binds[i].source,
			       SAFE | (s->binds[i].readonly ? MOUNTFD_RDONLY : 0), &p->binds[i], e);
	if (r == 0 && s->balanced && access("/tmp", F_OK) == 0)
		r = clone_safe("/tmp", SAFE, &p->tmp, e);
	return r;
}

static int copy_devices(struct pieces *p, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
		char path[32];
		int r;

		snprintf(path, sizeof(path), "/dev/%s", devices[i]);
		if (access(path, F_OK) < 0)
			continue;
		r = mounttree_clone(path, &p->devices[i], e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int make_read_only(struct pieces *p, struct err *e)
{
	return mounttree_restrict(-1, "/", SAFE | MOUNTFD_RDONLY, e);
}

static int own_tmp_and_run(struct pieces *p, struct err *e)
{
	int r = mount_tmpfs("/run", "0755", SAFE, e);

	if (r < 0)
		return r;
	if (p->tmp >= 0)
		return mounttree_attach(p->tmp, "/tmp", e);
	return mount_tmpfs("/tmp", "1777", SAFE, e);
}

static int hide_uppers(struct pieces *p, struct err *e)
{
	if (!p->root->hidden_dir)
		return 0;
	return mount_tmpfs(p->root->hidden_dir, "0700", SAFE | MOUNTFD_RDONLY, e);
}

static int mount_devpts(struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	static const struct mountfd_option options[] = {
		{"newinstance", NULL}, {"ptmxmode", "0666"}, {"mode", "0620"}};
	struct err ignored = ERR_NONE;

	/* Terminals are a convenience: a kernel without them still has sessions. */
	if (mkdir("/dev/pts", 0755) < 0 ||
	    mountfd_new("devpts", options, ARRAY_LEN(options), MOUNTFD_NOSUID | MOUNTFD_NOEXEC, &fd,
			&ignored) < 0)
		return 0;
	if (mounttree_attach(fd, "/dev/pts", e) < 0)
		return e->code;
	(void)!symlink("pts/ptmx", "/dev/ptmx");
	return 0;
}

static int own_dev(struct pieces *p, struct err *e)
{
	static const struct {
		const char *target, *path;
	} links[] = {
		{"/proc/self/fd", "/dev/fd"},
		{"/proc/self/fd/0", "/dev/stdin"},
		{"/proc/self/fd/1", "/dev/stdout"},
		{"/proc/self/fd/2", "/dev/stderr"},
	};
	int r = mount_tmpfs("/dev", "0755", SAFE, e);

	for (size_t i = 0; i < ARRAY_LEN(devices) && r == 0; i++) {
		char path[32];

		if (p->devices[i] < 0)
			continue;
		snprintf(path, sizeof(path), "/dev/%s", devices[i]);
		if (mknod(path, S_IFREG | 0666, 0) < 0)
			return err_set(e, -errno, "make %s: %m", path);
		r = mounttree_attach(p->devices[i], path, e);
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		(void)!symlink(links[i].target, links[i].path);
	if (mkdir("/dev/shm", 01777) == 0 && mount_tmpfs("/dev/shm", "1777", SAFE, e) < 0)
		return e->code;
	return mount_devpts(e);
}

/* Files through which root could reach the whole machine, or read what is not its business. */
static void mask_proc(void)
{
	static const char *const read_only[] = {"/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs",
						"/proc/sysrq-trigger"};
	static const char *const masked[] = {
		"/proc/cmdline",     "/proc/config.gz",	 "/proc/interrupts",	"/proc/kallsyms",
		"/proc/kcore",	     "/proc/key-users",	 "/proc/keys",		"/proc/kmsg",
		"/proc/kpagecount",  "/proc/kpageflags", "/proc/latency_stats", "/proc/modules",
		"/proc/sched_debug", "/proc/slabinfo",	 "/proc/timer_list",	"/proc/vmallocinfo",
	};
	struct err e = ERR_NONE;

	for (size_t i = 0; i < ARRAY_LEN(read_only); i++) {
		osb_cleanup(fd_closep) int fd = -1;

		if (clone_safe(read_only[i], SAFE | MOUNTFD_RDONLY, &fd, &e) == 0)
			(void)!mounttree_attach(fd, read_only[i], &e);
	}
	for (size_t i = 0; i < ARRAY_LEN(masked); i++) {
		osb_cleanup(fd_closep) int fd = -1;

		if (access(masked[i], F_OK) == 0 && mounttree_clone("/dev/null", &fd, &e) == 0)
			(void)!mounttree_attach(fd, masked[i], &e);
	}
}

static int own_proc(struct pieces *p, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	int r = mountfd_new("proc", NULL, 0, SAFE | MOUNTFD_NOEXEC, &fd, e);

	if (r == 0)
		r = mounttree_attach(fd, "/proc", e);
	if (r == 0)
		mask_proc();
	return r;
}

/* A file to mount over, and the directories above it. */
static int make_file(const char *path, struct err *e)
{
	osb_cleanup(mem_freep) char *parent = mem_strdup(path);
	char *slash = strrchr(parent, '/');

	if (slash && slash > parent) {
		*slash = '\0';
		if (paths_make_dirs(parent, e) < 0)
			return e->code;
	}
	return mknod(path, S_IFREG | 0600, 0) < 0 ? err_set(e, -errno, "make '%s': %m", path) : 0;
}

/* A place under a fresh /tmp or /run is made again; anywhere else it exists already. */
static int attach(int fd, const char *path, struct err *e)
{
	struct stat st;
	int r = 0;

	if (access(path, F_OK) < 0) {
		if (fstat(fd, &st) < 0)
			return err_set(e, -errno, "stat of what goes to '%s': %m", path);
		r = S_ISDIR(st.st_mode) ? paths_make_dirs(path, e) : make_file(path, e);
	}
	return r < 0 ? r : mounttree_attach(fd, path, e);
}

static int attach_all(struct pieces *p, struct err *e)
{
	const struct isolated_spec *s = p->root->spec;
	int r = attach(p->workspace, s->workspace, e);

	for (size_t i = 0; i < s->writable_n && r == 0; i++)
		r = attach(p->writable[i], s->writable[i], e);
	for (size_t i = 0; i < s->binds_n && r == 0; i++)
		r = attach(p->binds[i], s->binds[i].dest, e);
	return r;
}

/* Order is the security argument: each step assumes only the ones above it. */
static const struct {
	const char *name;
	int (*run)(struct pieces *p, struct err *e);
} steps[] = {
	{"private mounts", make_private},
	{"workspace", copy_workspace},
	{"writable paths", copy_paths},
	{"devices", copy_devices},
	{"read-only root", make_read_only},
	{"/tmp and /run", own_tmp_and_run},
	{"/dev", own_dev},
	{"/proc", own_proc},
	{"hidden uppers", hide_uppers},
	{"mounts", attach_all},
};

int isolated_root_build(struct isolated_root *root, struct err *e)
{
	struct pieces p = {.root = root, .workspace = -1, .tmp = -1};

	root->upper_fd = -1;

	memset(p.writable, -1, sizeof(p.writable));
	memset(p.binds, -1, sizeof(p.binds));
	memset(p.devices, -1, sizeof(p.devices));
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (steps[i].run(&p, e) < 0)
			return err_ctx(e, "%s", steps[i].name);
	/* The copies that were attached live on; our fds of them would keep them when unmounted. */
	fd_close(p.workspace);
	fd_close(p.tmp);
	for (size_t i = 0; i < ISOLATED_MAX_PATHS; i++) {
		fd_close(p.writable[i]);
		fd_close(p.binds[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(devices); i++)
		fd_close(p.devices[i]);
	return 0;
}
