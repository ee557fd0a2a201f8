/*
 * box/cgroups.c - what the host offers: the unified hierarchy, or one per controller.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "box/cgroup.h"
#include "box/cgroup_int.h"
#include "sys/mountfd.h"

static const char *const part_name[PARTS_] = {
	[PART_MEMORY] = "memory", [PART_CPU] = "cpu",	      [PART_CPUACCT] = "cpuacct",
	[PART_PIDS] = "pids",	  [PART_FREEZER] = "freezer",
};

static bool has_magic(int fd, long magic)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (long)fs.f_type == magic;
}

/* Controllers that share one mount ("cpu,cpuacct") share one directory. */
static void find_shared(struct cgroups *c)
{
	for (int i = 0; i < PARTS_; i++) {
		struct stat a, b;

		if (c->mount_fd[i] < 0 || fstat(c->mount_fd[i], &a) < 0)
			continue;
		for (int j = 0; j < i; j++) {
			if (c->mount_fd[j] < 0 || fstat(c->mount_fd[j], &b) < 0 ||
			    a.st_dev != b.st_dev)
				continue;
			c->mount_fd[i] = fd_close(c->mount_fd[i]);
			c->same_as[i] = j;
			break;
		}
	}
}

static void find_v1(struct cgroups *c, int top)
{
	size_t shown = 0;

	for (int i = 0; i < PARTS_; i++) {
		int fd = openat(top, part_name[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0 && has_magic(fd, CGROUP_SUPER_MAGIC)) {
			c->mount_fd[i] = fd;
			if (i != PART_FREEZER)
				c->shown[shown++] = part_name[i];
		} else {
			fd_close(fd);
		}
	}
	find_shared(c);
}

/* Which of the controllers came through to our children; "no processes in inner nodes" may forbid
 * it. */
static int delegate_v2(int dir_fd, struct err *e)
{
	static const char *const wanted[] = {"+memory", "+cpu", "+pids"};
	struct err one;

	(void)e;
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		if (knob_write(dir_fd, "cgroup.subtree_control", wanted[i], &one) < 0)
			continue; /* what is missing is found out from the result, not from here */
	return 0;
}

static int make_parents(struct cgroups *c, struct err *e)
{
	for (int i = 0; i < PARTS_; i++) {
		if (c->mount_fd[i] < 0)
			continue;
		if (c->unified && delegate_v2(c->mount_fd[i], e) < 0)
			return e->code;
		if (mkdirat(c->mount_fd[i], c->parent, 0755) < 0) {
			if (errno != EEXIST)
				return err_set(e, -errno, "mkdir cgroup %s: %m", c->parent);
			c->resumed = true;
		}
		c->parent_fd[i] =
			openat(c->mount_fd[i], c->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (c->parent_fd[i] < 0)
			return err_set(e, -errno, "open cgroup %s: %m", c->parent);
		if (c->unified && delegate_v2(c->parent_fd[i], e) < 0)
			return e->code;
	}
	return 0;
}

static bool v2_has(const struct cgroups *c, const char *controller)
{
	struct err e = ERR_NONE;
	struct view rest, word;
	char text[256];

	if (knob_read(c->parent_fd[0], "cgroup.subtree_control", text, sizeof(text), &e) < 0)
		return false;
	rest = view_of(text);
	while (view_split(&rest, ' ', &word))
		if (view_is(word, controller))
			return true;
	return false;
}

static bool has(const struct cgroups *c, enum cgroup_part part)
{
	if (c->unified)
		return part == PART_FREEZER || part == PART_CPUACCT || v2_has(c, part_name[part]);
	return c->mount_fd[part] >= 0 || c->same_as[part] != (int)part;
}

static void find_capabilities(struct cgroups *c)
{
	static const struct {
		enum cgroup_part part;
		unsigned bit;
		const char *without;
	} table[] = {
		{PART_MEMORY, WARDEN_CAN_MEMORY, "memory is not limited"},
		{PART_CPU, WARDEN_CAN_CPU, "cpu is not limited"},
		{PART_PIDS, WARDEN_CAN_PIDS, "the number of processes is not limited"},
		{PART_FREEZER, WARDEN_CAN_FREEZE, "sandboxes cannot be paused"},
	};

	c->capabilities = c->unified ? WARDEN_CAN_CGROUP2 : 0;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		size_t len = strlen(c->missing);

		if (has(c, table[i].part))
			c->capabilities |= table[i].bit;
		else
			snprintf(c->missing + len, sizeof(c->missing) - len, "%s%s",
				 len ? ", " : "", table[i].without);
	}
}

/* Options of the host's cgroup2, which a new mount of it would reset. */
static size_t kept_options(struct mountfd_option *ret, size_t max)
{
	static const char *const known[] = {"nsdelegate",	    "memory_localevents",
					    "memory_recursiveprot", "memory_hugetlb_accounting",
					    "pids_localevents",	    "favordynmods"};
	struct err e = ERR_NONE;
	struct view rest, line;
	char text[16384];
	size_t n = 0;

	if (knob_read(AT_FDCWD, "/proc/mounts", text, sizeof(text), &e) < 0)
		return 0;
	rest = view_of(text);
	while (view_split(&rest, '\n', &line)) {
		if (view_find_view(line, VIEW(" cgroup2 ")) == line.len)
			continue;
		for (size_t i = 0; i < ARRAY_LEN(known) && n < max; i++)
			if (view_find_view(line, view_of(known[i])) < line.len)
				ret[n++] = (struct mountfd_option){known[i], NULL};
		break;
	}
	return n;
}

/*
 * On v1 every sandbox's first process is moved into its cgroups, and the first move after a pause
 * waits for a grace period: some 10 ms.  "favordynmods" takes that away for the price of slightly
 * slower forks.  The switch is one for all hierarchies, but only cgroup2 lets it be set; kernels
 * before 6.0 have none.
 */
static void make_moves_cheap(struct cgroups *c, bool cheap)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct mountfd_option o[8] = {{0}};
	struct err ignored = ERR_NONE;
	size_t n = kept_options(o, ARRAY_LEN(o) - 1), kept = 0;

	for (size_t i = 0; i < n; i++) {
		bool is_ours = strcmp(o[i].key, "favordynmods") == 0;

		if (is_ours && cheap) {
			c->eager = c->resumed; /* else the host wants it that way */
			return;
		}
		if (!is_ours)
			o[kept++] = o[i];
	}
	if (cheap)
		o[kept++] = (struct mountfd_option){"favordynmods", NULL};
	/* The options are the hierarchy's, not the mount's: it need not be attached. */
	if (mountfd_new("cgroup2", o, kept, 0, &fd, &ignored) == 0)
		c->eager = cheap;
}

int cgroups_open(const char *mount_dir, const char *tag, struct cgroups **ret, struct err *e)
{
	osb_cleanup(fd_closep) int top = -1;
	struct cgroups *c = mem_new(struct cgroups);
	int r;

	list_init(&c->open);
	snprintf(c->parent, sizeof(c->parent), "opensandbox-%s", tag);
	for (int i = 0; i < PARTS_; i++) {
		c->mount_fd[i] = c->parent_fd[i] = -1;
		c->same_as[i] = i;
	}
	top = open(mount_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0) {
		r = err_set(e, -errno, "open %s: %m", mount_dir);
	} else {
		c->unified = has_magic(top, CGROUP2_SUPER_MAGIC);
		if (c->unified) {
			c->mount_fd[0] = take_fd(top);
			for (int i = 1; i < PARTS_; i++)
				c->same_as[i] = 0;
		} else {
			find_v1(c, top);
		}
		r = make_parents(c, e);
	}
	if (r < 0) {
		cgroups_free(c);
		return r;
	}
	find_capabilities(c);
	if (!c->unified)
		make_moves_cheap(c, true);
	*ret = c;
	return 0;
}

void cgroups_free(struct cgroups *c)
{
	if (!c)
		return;
	for (int i = 0; i < PARTS_; i++) {
		fd_close(c->mount_fd[i]);
		fd_close(c->parent_fd[i]);
	}
	free(c);
}

unsigned cgroups_capabilities(const struct cgroups *c)
{
	return c->capabilities;
}

bool cgroups_unified(const struct cgroups *c)
{
	return c->unified;
}

const char *const *cgroups_shown(const struct cgroups *c)
{
	return c->unified ? NULL : c->shown;
}

static int show_one(int parent_fd, int dir_fd, const char *name, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	int r = mountfd_clone(parent_fd, ".", &fd, e);

	if (r == 0)
		r = mountfd_shape(fd,
				  MOUNTFD_RDONLY | MOUNTFD_NOSUID | MOUNTFD_NODEV | MOUNTFD_NOEXEC,
				  -1, e);
	return r < 0 ? r : mountfd_attach(fd, dir_fd, name, e);
}

int cgroups_show(const struct cgroups *c, int dir_fd, struct err *e)
{
	int r = 0;

	if (c->unified)
		return show_one(c->parent_fd[0], dir_fd, ".", e);
	for (int i = 0; r == 0 && i < PARTS_; i++)
		if (i != PART_FREEZER && c->parent_fd[c->same_as[i]] >= 0)
			r = show_one(c->parent_fd[c->same_as[i]], dir_fd, part_name[i], e);
	return r;
}

const char *cgroups_missing(const struct cgroups *c)
{
	return c->missing;
}

bool cgroups_in_use(const struct cgroups *c, const char *name)
{
	list_each_safe (it, next, (struct list *)&c->open) {
		if (strcmp(list_entry(it, struct cgroup, link)->name, name) == 0)
			return true;
	}
	return false;
}

/* A killed warden may have made only some of the directories: every hierarchy is looked at. */
int cgroups_each(struct cgroups *c, void (*fn)(void *arg, const char *name), void *arg,
		 struct err *e)
{
	for (int i = 0; i < PARTS_; i++) {
		struct dirent *entry;
		int copy;
		DIR *d;

		if (c->parent_fd[i] < 0)
			continue;
		copy = openat(c->parent_fd[i], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		d = copy < 0 ? NULL : fdopendir(copy);
		if (!d) {
			fd_close(copy);
			return err_set(e, -errno, "list cgroups: %m");
		}
		while ((entry = readdir(d)))
			if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
				fn(arg, entry->d_name);
		closedir(d);
	}
	return 0;
}

void cgroups_remove_parents(struct cgroups *c)
{
	bool all = true;

	for (int i = 0; i < PARTS_; i++)
		if (c->mount_fd[i] >= 0 &&
		    unlinkat(c->mount_fd[i], c->parent, AT_REMOVEDIR) < 0) /* only if empty */
			all = false;
	if (all && c->eager)
		make_moves_cheap(c, false);
}
