/*
 * box/pseudo.c - /proc, /sys and /dev of a sandbox: new instances, masked, with only the harmless
 * nodes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "box/cgroup.h"
#include "box/rootfs.h"
#include "box/setup.h"
#include "sys/mountfd.h"

/* Shown, but not writable even to a process that kept some right. */
static const char *const read_only[] = {
	"proc/bus", "proc/fs", "proc/irq", "proc/sys", "proc/sysrq-trigger",
};

/* Not shown: they tell of the host, or have been holes. */
static const char *const masked[] = {
	"proc/acpi",	   "proc/asound",	 "proc/cmdline",     "proc/config.gz",
	"proc/interrupts", "proc/kallsyms",	 "proc/kcore",	     "proc/key-users",
	"proc/keys",	   "proc/kmsg",		 "proc/kpagecgroup", "proc/kpagecount",
	"proc/kpageflags", "proc/latency_stats", "proc/modules",     "proc/mtrr",
	"proc/pressure",   "proc/sched_debug",	 "proc/schedstat",   "proc/scsi",
	"proc/slabinfo",   "proc/timer_list",	 "proc/timer_stats", "proc/vmallocinfo",
};

/* Of /sys programs need to know the processors; the rest describes the host. */
static const char *const shown[] = {"devices/system/cpu", "devices/system/node"};

/* One empty read-only directory and one empty file stand in for everything hidden.  They lie on
 * "dev", below what is mounted there later: copies can be made of an attached mount on every
 * kernel, of a detached one not, and taking it away again would cost a grace period. */
#define BLANK_DIR  "dev/blank_dir"
#define BLANK_FILE "dev/blank"

/* All sandboxes of a host have some 3,000 between them. */
#define PTYS_MAX "256"

#define QUIET	(MOUNTFD_NOSUID | MOUNTFD_NODEV | MOUNTFD_NOEXEC)
#define QUIETER (QUIET | MOUNTFD_RDONLY)

static int mount_new(const char *type, const struct mountfd_option *o, size_t n, unsigned attrs,
		     const char *where, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	int r = mountfd_new(type, o, n, attrs, &fd, e);

	return r < 0 ? r : mountfd_attach(fd, AT_FDCWD, where, e);
}

static int mount_blank(struct err *e)
{
	struct mountfd_option o[] = {{"mode", "0555"}, {"size", "4k"}};
	osb_cleanup(fd_closep) int file = -1;
	int r = mount_new("tmpfs", o, ARRAY_LEN(o), QUIET, "dev", e);

	if (r < 0)
		return r;
	file = open(BLANK_FILE, O_CREAT | O_RDONLY | O_CLOEXEC, 0444);
	if (file < 0 || mkdir(BLANK_DIR, 0555) < 0)
		return err_set(e, -errno, "make an empty file and directory: %m");
	return 0;
}

/* A read-only copy of the mount that shows `from`, put over `path`. */
static int cover(const char *from, const char *path, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	int r = mountfd_clone(AT_FDCWD, from, &fd, e);

	if (r == 0)
		r = mountfd_shape(fd, QUIETER, -1, e);
	if (r == 0)
		r = mountfd_attach(fd, AT_FDCWD, path, e);
	return r < 0 ? err_ctx(e, "cover /%s", path) : 0;
}

static int hide_masked(struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(masked); i++) {
		struct stat st;
		int r;

		/* A kernel without that file has nothing to hide. */
		if (lstat(masked[i], &st) < 0)
			continue;
		r = cover(S_ISDIR(st.st_mode) ? BLANK_DIR : BLANK_FILE, masked[i], e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Root inside does not own its network namespace: what it may do there is for everybody.  Through
 * this /proc, which is new: in the host's the kernel would search among all namespaces. */
static int open_network(struct err *e)
{
	static const struct {
		const char *path, *value;
	} table[] = {
		{"proc/sys/net/ipv4/ip_unprivileged_port_start", "0"},
		{"proc/sys/net/ipv4/ping_group_range", "0 2147483647"},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		osb_cleanup(fd_closep) int fd = open(table[i].path, O_WRONLY | O_CLOEXEC);

		if (fd < 0 && errno == ENOENT)
			continue; /* a kernel that knows no such setting */
		if (fd < 0 || write(fd, table[i].value, strlen(table[i].value)) < 0)
			return err_set(e, -errno, "write /%s: %m", table[i].path);
	}
	return 0;
}

/* execd gives isolated sessions a /proc of their own.  The kernel allows that in a namespace that
 * has one without masks, so one lies where nobody gets to: below what is mounted on "dev" later. */
static int keep_whole(struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	int r = mountfd_clone(AT_FDCWD, "proc", &fd, e);

	if (r == 0 && mkdir("dev/proc", 0555) < 0)
		r = err_set(e, -errno, "mkdir: %m");
	return r < 0 ? r : mountfd_attach(fd, AT_FDCWD, "dev/proc", e);
}

int rootfs_mount_proc(const struct setup *s, struct err *e)
{
	int r = mount_new("proc", NULL, 0, QUIET, "proc", e);

	(void)s;
	if (r == 0)
		r = open_network(e);
	if (r == 0)
		r = mount_blank(e);
	if (r == 0)
		r = keep_whole(e);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(read_only); i++)
		if (access(read_only[i], F_OK) == 0)
			r = cover(read_only[i], read_only[i], e);
	return r < 0 ? r : hide_masked(e);
}

/* The sandbox's own numbers, read-only: one mount on v2, one per controller on v1. */
static int mount_cgroups(const struct setup *s, struct err *e)
{
	char where[64];
	int r = 0;

	if (mkdir("sys/fs", 0755) < 0 || mkdir("sys/fs/cgroup", 0755) < 0)
		return err_set(e, -errno, "mkdir /sys/fs/cgroup: %m");
	if (!s->cgroup_v1)
		return mount_new("cgroup2", NULL, 0, QUIETER, "sys/fs/cgroup", e);
	for (size_t i = 0; r == 0 && s->cgroup_v1[i]; i++) {
		struct mountfd_option controller = {s->cgroup_v1[i], NULL};

		snprintf(where, sizeof(where), "sys/fs/cgroup/%s", s->cgroup_v1[i]);
		if (mkdir(where, 0755) < 0)
			return err_set(e, -errno, "mkdir %s: %m", where);
		r = mount_new("cgroup", &controller, 1, QUIETER, where, e);
	}
	return r;
}

/* What is shown of the kernel's own tree, which is mounted at "sys" for that long. */
static int take_shown(int fds[ARRAY_LEN(shown)], struct err *e)
{
	int r = mount_new("sysfs", NULL, 0, QUIETER, "sys", e);
	char path[64];

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(shown); i++) {
		snprintf(path, sizeof(path), "sys/%s", shown[i]);
		if (access(path, F_OK) < 0)
			continue; /* a kernel without it */
		r = mountfd_clone(AT_FDCWD, path, &fds[i], e);
		if (r == 0)
			r = mountfd_shape(fds[i], QUIETER, -1, e);
	}
	return r;
}

static int put_shown(const int fds[ARRAY_LEN(shown)], struct err *e)
{
	char path[64];
	int r = 0;

	if (mkdir("sys/devices", 0755) < 0 || mkdir("sys/devices/system", 0755) < 0)
		return err_set(e, -errno, "mkdir /sys/devices/system: %m");
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(shown); i++) {
		snprintf(path, sizeof(path), "sys/%s", shown[i]);
		if (fds[i] < 0)
			continue;
		if (mkdir(path, 0755) < 0)
			return err_set(e, -errno, "mkdir /%s: %m", path);
		r = mountfd_attach(fds[i], AT_FDCWD, path, e);
	}
	return r;
}

/* A tree of our own that covers the kernel's: what is not put there is not to be seen. */
int rootfs_mount_sys(const struct setup *s, struct err *e)
{
	struct mountfd_option o[] = {{"mode", "0755"}, {"size", "64k"}};
	osb_cleanup(fd_closep) int top = -1;
	int fds[ARRAY_LEN(shown)] = {-1, -1}, r;

	r = take_shown(fds, e);
	if (r == 0)
		r = mountfd_new("tmpfs", o, ARRAY_LEN(o), QUIET, &top, e);
	if (r == 0)
		r = mountfd_attach(top, AT_FDCWD, "sys", e);
	if (r == 0)
		r = put_shown(fds, e);
	if (r == 0)
		r = mount_cgroups(s, e);
	if (r == 0)
		r = mountfd_shape(top, QUIETER, -1, e);
	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		fd_close(fds[i]);
	return r;
}

static int make_nodes(const struct setup *s, struct err *e)
{
	static const struct {
		const char *path;
		unsigned major, minor;
	} nodes[] = {
		{"dev/null", 1, 3},   {"dev/zero", 1, 5},    {"dev/full", 1, 7},
		{"dev/random", 1, 8}, {"dev/urandom", 1, 9}, {"dev/tty", 5, 0},
	};
	static const char *const links[][2] = {
		{"/proc/self/fd", "dev/fd"},	   {"/proc/self/fd/0", "dev/stdin"},
		{"/proc/self/fd/1", "dev/stdout"}, {"/proc/self/fd/2", "dev/stderr"},
		{"pts/ptmx", "dev/ptmx"},
	};

	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		if (mknod(nodes[i].path, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)) <
			    0 ||
		    chmod(nodes[i].path, 0666) < 0 ||
		    chown(nodes[i].path, s->id_base, s->id_base) < 0)
			return err_set(e, -errno, "make /%s: %m", nodes[i].path);
	}
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (symlink(links[i][0], links[i][1]) < 0)
			return err_set(e, -errno, "link /%s: %m", links[i][1]);
	return 0;
}

int rootfs_mount_dev(const struct setup *s, struct err *e)
{
	char id[16], tty[16];
	struct mountfd_option dev[] = {{"mode", "0755"}, {"size", "64k"}, {"uid", id}, {"gid", id}};
	struct mountfd_option shm[] = {{"mode", "1777"}, {"size", "64m"}, {"uid", id}, {"gid", id}};
	struct mountfd_option pts[] = {
		{"newinstance", NULL}, {"ptmxmode", "0666"}, {"mode", "0620"},
		{"gid", tty},	       {"max", PTYS_MAX},
	};
	unsigned quiet = MOUNTFD_NOSUID | MOUNTFD_NOEXEC;
	int r;

	snprintf(id, sizeof(id), "%u", s->id_base);
	snprintf(tty, sizeof(tty), "%u", s->id_base + 5);
	r = mount_new("tmpfs", dev, ARRAY_LEN(dev), quiet, "dev", e);
	if (r == 0)
		r = make_nodes(s, e);
	if (r == 0 && (mkdir("dev/pts", 0755) < 0 || mkdir("dev/shm", 01777) < 0 ||
		       mkdir("dev/mqueue", 01777) < 0))
		r = err_set(e, -errno, "mkdir below /dev: %m");
	if (r == 0)
		r = mount_new("devpts", pts, ARRAY_LEN(pts), quiet, "dev/pts", e);
	if (r == 0)
		r = mount_new("tmpfs", shm, ARRAY_LEN(shm), quiet | MOUNTFD_NODEV, "dev/shm", e);
	if (r == 0)
		r = mount_new("mqueue", NULL, 0, quiet | MOUNTFD_NODEV, "dev/mqueue", e);
	return r;
}
