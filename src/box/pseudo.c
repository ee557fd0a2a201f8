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
#include "box/shared.h"
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

/* All sandboxes of a host have some 3,000 between them. */
#define PTYS_MAX "256"

#define QUIET (MOUNTFD_NOSUID | MOUNTFD_NODEV | MOUNTFD_NOEXEC)

static int mount_new(const char *type, const struct mountfd_option *o, size_t n, unsigned attrs,
		     const char *where, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	int r = mountfd_new(type, o, n, attrs, &fd, e);

	return r < 0 ? r : mountfd_attach(fd, AT_FDCWD, where, e);
}

/* A copy of the mount that shows `from`, attributes and all, in one call. */
static int bind(const char *from, const char *to, unsigned long flags, struct err *e)
{
	if (mount(from, to, NULL, MS_BIND | flags, NULL) < 0)
		return err_set(e, -errno, "bind '%s' to /%s: %m", from, to);
	return 0;
}

static int bind_shared(const struct setup *s, const char *from, const char *to, struct err *e)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", s->shared, from);
	return bind(path, to, MS_REC, e);
}

/* Over itself: what it shows can be read only. */
static int make_read_only(const char *path, struct err *e)
{
	int r = bind(path, path, 0, e);

	if (r == 0 &&
	    mount(NULL, path, NULL,
		  MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		r = err_set(e, -errno, "make /%s read-only: %m", path);
	return r;
}

/* One empty file and one empty directory stand in for everything hidden. */
static int hide_masked(const struct setup *s, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(masked); i++) {
		struct stat st;
		int r;

		/* A kernel without that file has nothing to hide. */
		if (lstat(masked[i], &st) < 0)
			continue;
		r = bind_shared(s, S_ISDIR(st.st_mode) ? SHARED_DIR : SHARED_FILE, masked[i], e);
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
static int keep_whole(const struct setup *s, struct err *e)
{
	int r = bind_shared(s, SHARED_HIDDEN, "dev", e);

	return r < 0 ? r : bind("proc", "dev/proc", 0, e);
}

int rootfs_mount_proc(const struct setup *s, struct err *e)
{
	int r = mount_new("proc", NULL, 0, QUIET, "proc", e);

	if (r == 0)
		r = open_network(e);
	if (r == 0)
		r = keep_whole(s, e);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(read_only); i++)
		if (access(read_only[i], F_OK) == 0)
			r = make_read_only(read_only[i], e);
	return r < 0 ? r : hide_masked(s, e);
}

/* A tree of our own, and in it the sandbox's own numbers: one mount on v2, one per controller on
 * v1.  What is not put there is not to be seen. */
int rootfs_mount_sys(const struct setup *s, struct err *e)
{
	const char *own = cgroup_name(s->cgroup);
	char from[160], to[64];
	int r = bind_shared(s, SHARED_SYS, "sys", e);

	if (r == 0 && !s->cgroup_v1) {
		snprintf(from, sizeof(from), SHARED_CGROUP "/%s", own);
		r = bind_shared(s, from, "sys/fs/cgroup", e);
	}
	for (size_t i = 0; r == 0 && s->cgroup_v1 && s->cgroup_v1[i]; i++) {
		snprintf(from, sizeof(from), SHARED_CGROUP "/%s/%s", s->cgroup_v1[i], own);
		snprintf(to, sizeof(to), "sys/fs/cgroup/%s", s->cgroup_v1[i]);
		r = bind_shared(s, from, to, e);
	}
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
		    chown(nodes[i].path, s->id_base, s->id_base) < 0)
			return err_set(e, -errno, "make /%s: %m", nodes[i].path);
	}
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (symlink(links[i][0], links[i][1]) < 0)
			return err_set(e, -errno, "link /%s: %m", links[i][1]);
	return 0;
}

/* One file system for /dev and, with attributes of its own, for the files in memory below it. */
static int make_dev(const struct setup *s, struct err *e)
{
	char id[16];
	struct mountfd_option o[] = {{"mode", "0755"}, {"size", "64m"}, {"uid", id}, {"gid", id}};
	unsigned long quiet = MS_NOSUID | MS_NOEXEC | MS_NODEV;
	int r;

	snprintf(id, sizeof(id), "%u", s->id_base);
	r = mount_new("tmpfs", o, ARRAY_LEN(o), MOUNTFD_NOSUID | MOUNTFD_NOEXEC, "dev", e);
	if (r == 0)
		r = make_nodes(s, e);
	if (r == 0 && (mkdir("dev/pts", 0755) < 0 || mkdir("dev/shm", 01777) < 0 ||
		       mkdir("dev/mqueue", 01777) < 0 || chown("dev/shm", s->id_base, s->id_base)))
		r = err_set(e, -errno, "mkdir below /dev: %m");
	if (r == 0)
		r = bind("dev/shm", "dev/shm", 0, e);
	if (r == 0 && mount(NULL, "dev/shm", NULL, MS_BIND | MS_REMOUNT | quiet, NULL) < 0)
		r = err_set(e, -errno, "mount /dev/shm: %m");
	return r;
}

int rootfs_mount_dev(const struct setup *s, struct err *e)
{
	unsigned quiet = MOUNTFD_NOSUID | MOUNTFD_NOEXEC;
	mode_t mask = umask(0);
	char tty[16];
	struct mountfd_option pts[] = {
		{"newinstance", NULL}, {"ptmxmode", "0666"}, {"mode", "0620"},
		{"gid", tty},	       {"max", PTYS_MAX},
	};
	int r = make_dev(s, e);

	(void)umask(mask);
	snprintf(tty, sizeof(tty), "%u", s->id_base + 5);
	if (r == 0)
		r = mount_new("devpts", pts, ARRAY_LEN(pts), quiet, "dev/pts", e);
	if (r == 0)
		r = mount_new("mqueue", NULL, 0, quiet | MOUNTFD_NODEV, "dev/mqueue", e);
	return r;
}
