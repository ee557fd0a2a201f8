/*
 * box/cgroup.c - the directories of one sandbox: made, joined, limited, frozen, read, removed.
 */
#include "box/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/num.h"
#include "box/cgroup_int.h"
#include "sys/clone.h"

#define CPU_PERIOD_US  100000
#define FREEZE_WAIT_US 5000000

int cgroup_dir(const struct cgroup *g, enum cgroup_part part)
{
	return g->fd[g->host->same_as[part]];
}

static struct cgroup *new_cgroup(struct cgroups *c, const char *name)
{
	struct cgroup *g = mem_new(struct cgroup);

	g->host = c;
	g->oom_fd = -1;
	for (int i = 0; i < PARTS_; i++)
		g->fd[i] = -1;
	memcpy(g->name, name, strnlen(name, sizeof(g->name) - 1));
	list_push_back(&c->open, &g->link);
	return g;
}

static int open_dirs(struct cgroup *g, bool create, struct err *e)
{
	struct cgroups *c = g->host;

	for (int i = 0; i < PARTS_; i++) {
		if (c->parent_fd[i] < 0)
			continue;
		if (create && mkdirat(c->parent_fd[i], g->name, 0755) < 0)
			return err_set(e, -errno, "mkdir cgroup %s: %m", g->name);
		g->fd[i] = openat(c->parent_fd[i], g->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (g->fd[i] < 0 && (create || errno != ENOENT))
			return err_set(e, -errno, "open cgroup %s: %m", g->name);
	}
	return 0;
}

int cgroup_create(struct cgroups *c, const char *name, struct cgroup **ret, struct err *e)
{
	struct err ignored = ERR_NONE;
	struct cgroup *g = new_cgroup(c, name);
	int r = open_dirs(g, true, e);

	if (r < 0) {
		if (cgroup_remove(g, &ignored) < 0)
			err_ctx(e, "%s", ignored.msg);
		cgroup_free(g);
		return r;
	}
	*ret = g;
	return 0;
}

int cgroup_open(struct cgroups *c, const char *name, struct cgroup **ret, struct err *e)
{
	struct cgroup *g = new_cgroup(c, name);
	int r = open_dirs(g, false, e);

	if (r < 0) {
		cgroup_free(g);
		return r;
	}
	*ret = g;
	return 0;
}

void cgroup_settle(struct cgroup *g)
{
	for (int i = 0; i < PARTS_; i++)
		g->fd[i] = clone_hide_fd(g->fd[i]);
}

void cgroup_free(struct cgroup *g)
{
	if (!g)
		return;
	for (int i = 0; i < PARTS_; i++)
		fd_close(g->fd[i]);
	fd_close(g->oom_fd);
	list_remove(&g->link);
	free(g);
}

const char *cgroup_name(const struct cgroup *g)
{
	return g->name;
}

int cgroup_clone_fd(const struct cgroup *g)
{
	return g->host->unified ? g->fd[0] : -1;
}

int cgroup_join(const struct cgroup *g, struct err *e)
{
	if (g->host->unified)
		return 0; /* it was cloned there */
	for (int i = 0; i < PARTS_; i++) {
		int r = g->fd[i] < 0 ? 0 : knob_write(g->fd[i], "cgroup.procs", "0", e);

		if (r < 0)
			return r;
	}
	return 0;
}

static int limit_memory_v2(int dir, const struct warden_limits *l, struct err *e)
{
	struct err no_swap = ERR_NONE;
	int r = l->memory_bytes ? knob_write_u64(dir, "memory.max", l->memory_bytes, e)
				: knob_write(dir, "memory.max", "max", e);

	/* A host without swap accounting has no such knob, and nothing to escape to. */
	if (r == 0 && knob_write(dir, "memory.swap.max", "0", &no_swap) < 0 &&
	    no_swap.code != -ENOENT)
		r = err_set(e, no_swap.code, "%s", no_swap.msg);
	if (r == 0 && l->memory_low_bytes)
		r = knob_write_u64(dir, "memory.low", l->memory_low_bytes, e);
	return r;
}

/* Memory plus swap must never be below memory: which of the two goes first depends on the
 * direction. */
static int limit_memory_v1(int dir, const struct warden_limits *l, struct err *e)
{
	struct err first = ERR_NONE;
	bool memsw = faccessat(dir, "memory.memsw.limit_in_bytes", F_OK, 0) == 0;
	int64_t n = l->memory_bytes ? (int64_t)l->memory_bytes : -1;
	char text[24];
	int r;

	snprintf(text, sizeof(text), "%" PRId64, n);
	r = knob_write(dir, "memory.limit_in_bytes", text, &first);
	if (memsw && knob_write(dir, "memory.memsw.limit_in_bytes", text, e) < 0)
		return e->code;
	if (r < 0)
		r = knob_write(dir, "memory.limit_in_bytes", text, e);
	if (r == 0 && !memsw)
		r = knob_write(dir, "memory.swappiness", "0", e);
	if (r == 0 && l->memory_low_bytes)
		r = knob_write_u64(dir, "memory.soft_limit_in_bytes", l->memory_low_bytes, e);
	return r;
}

/* Thousandths of a core as a share: one core is the default weight. */
static uint64_t scaled(uint64_t milli, uint64_t one_core, uint64_t min, uint64_t max)
{
	uint64_t n = milli * one_core / 1000;

	return MIN(MAX(n, min), max);
}

static int limit_cpu_v2(int dir, const struct warden_limits *l, struct err *e)
{
	char text[48];
	int r;

	if (l->cpu_milli)
		snprintf(text, sizeof(text), "%" PRIu64 " %d",
			 MAX(l->cpu_milli * CPU_PERIOD_US / 1000, UINT64_C(1000)), CPU_PERIOD_US);
	else
		snprintf(text, sizeof(text), "max %d", CPU_PERIOD_US);
	r = knob_write(dir, "cpu.max", text, e);
	if (r == 0 && l->cpu_weight_milli)
		r = knob_write_u64(dir, "cpu.weight", scaled(l->cpu_weight_milli, 100, 1, 10000),
				   e);
	return r;
}

static int limit_cpu_v1(int dir, const struct warden_limits *l, struct err *e)
{
	uint64_t quota = MAX(l->cpu_milli * CPU_PERIOD_US / 1000, UINT64_C(1000));
	int r = l->cpu_milli ? knob_write_u64(dir, "cpu.cfs_quota_us", quota, e)
			     : knob_write(dir, "cpu.cfs_quota_us", "-1", e);

	if (r == 0 && l->cpu_weight_milli)
		r = knob_write_u64(dir, "cpu.shares", scaled(l->cpu_weight_milli, 1024, 2, 262144),
				   e);
	return r;
}

int cgroup_limit(struct cgroup *g, const struct warden_limits *l, struct err *e)
{
	unsigned can = g->host->capabilities;
	bool v2 = g->host->unified;
	int r = 0;

	g->weighted |= l->memory_low_bytes || l->cpu_weight_milli;
	if (can & WARDEN_CAN_MEMORY)
		r = v2 ? limit_memory_v2(g->fd[0], l, e)
		       : limit_memory_v1(cgroup_dir(g, PART_MEMORY), l, e);
	if (r == 0 && (can & WARDEN_CAN_CPU))
		r = v2 ? limit_cpu_v2(g->fd[0], l, e) : limit_cpu_v1(cgroup_dir(g, PART_CPU), l, e);
	if (r == 0 && (can & WARDEN_CAN_PIDS))
		r = knob_write_u64(cgroup_dir(g, PART_PIDS), "pids.max", l->pids, e);
	return r;
}

int cgroup_unlimit(struct cgroup *g, struct err *e)
{
	const struct warden_limits none = {0};
	int memory = cgroup_dir(g, PART_MEMORY), cpu = cgroup_dir(g, PART_CPU);
	int r = memory < 0 ? 0 : limit_memory_v1(memory, &none, e);

	if (r == 0 && cpu >= 0)
		r = limit_cpu_v1(cpu, &none, e);
	if (r == 0 && cgroup_dir(g, PART_PIDS) >= 0)
		r = knob_write(cgroup_dir(g, PART_PIDS), "pids.max", "max", e);
	if (r == 0 && g->weighted && memory >= 0)
		r = knob_write(memory, "memory.soft_limit_in_bytes", "-1", e);
	if (r == 0 && g->weighted && cpu >= 0)
		r = knob_write(cpu, "cpu.shares", "1024", e);
	g->weighted &= r < 0;
	return r;
}

static bool is_frozen(const struct cgroup *g, bool frozen)
{
	struct err e = ERR_NONE;
	char text[32];

	if (g->host->unified)
		return knob_read_field(g->fd[0], "cgroup.events", "frozen", 2) == frozen;
	if (knob_read(cgroup_dir(g, PART_FREEZER), "freezer.state", text, sizeof(text), &e) < 0)
		return false;
	return strcmp(text, frozen ? "FROZEN" : "THAWED") == 0;
}

static int ask_freeze(struct cgroup *g, bool frozen, struct err *e)
{
	g->froze |= frozen;
	if (g->host->unified)
		return knob_write(g->fd[0], "cgroup.freeze", frozen ? "1" : "0", e);
	return knob_write(cgroup_dir(g, PART_FREEZER), "freezer.state",
			  frozen ? "FROZEN" : "THAWED", e);
}

/* v1 may stay FREEZING when a task was in the middle of a fork: asking again moves it on. */
int cgroup_freeze(struct cgroup *g, bool frozen, struct err *e)
{
	uint64_t deadline = clock_mono_us() + FREEZE_WAIT_US;
	struct err undo = ERR_NONE;
	unsigned pause_us = 20;

	if (!(g->host->capabilities & WARDEN_CAN_FREEZE))
		return err_set(e, -EOPNOTSUPP, "this host has no freezer cgroup");
	do {
		int r = ask_freeze(g, frozen, e);

		if (r < 0)
			return r;
		if (is_frozen(g, frozen))
			return 0;
		usleep(pause_us);
		pause_us = MIN(pause_us * 2, 5000u);
	} while (clock_mono_us() < deadline);
	if (ask_freeze(g, !frozen, &undo) < 0)
		return err_set(e, -ETIMEDOUT, "the freezer is stuck: %s", undo.msg);
	return err_set(e, -ETIMEDOUT, "not %s within %d s", frozen ? "frozen" : "thawed",
		       FREEZE_WAIT_US / 1000000);
}

uint64_t cgroup_oom_kills(struct cgroup *g)
{
	if (g->host->unified)
		return knob_read_field(g->fd[0], "memory.events", "oom_kill", 0);
	return knob_read_field(cgroup_dir(g, PART_MEMORY), "memory.oom_control", "oom_kill", 0);
}

int cgroup_stats(struct cgroup *g, struct warden_msg *ret, struct err *e)
{
	int memory = cgroup_dir(g, PART_MEMORY);
	uint64_t limit;

	(void)e;
	if (g->host->unified) {
		ret->stats.cpu_usec = knob_read_field(g->fd[0], "cpu.stat", "usage_usec", 0);
		ret->stats.memory_bytes = knob_read_u64(memory, "memory.current", 0);
		ret->stats.memory_peak_bytes = knob_read_u64(memory, "memory.peak", 0);
		limit = knob_read_u64(memory, "memory.max", 0);
	} else {
		ret->stats.cpu_usec =
			knob_read_u64(cgroup_dir(g, PART_CPUACCT), "cpuacct.usage", 0) / 1000;
		ret->stats.memory_bytes = knob_read_u64(memory, "memory.usage_in_bytes", 0);
		ret->stats.memory_peak_bytes =
			knob_read_u64(memory, "memory.max_usage_in_bytes", 0);
		limit = knob_read_u64(memory, "memory.limit_in_bytes", 0);
	}
	/* "No limit" is a number near the top on v1 and "max" on v2. */
	ret->stats.memory_limit_bytes = limit > UINT64_C(1) << 62 ? 0 : limit;
	ret->stats.pids = knob_read_u64(cgroup_dir(g, PART_PIDS), "pids.current", 0);
	ret->stats.oom_kills = cgroup_oom_kills(g);
	return 0;
}

static int oom_eventfd(struct cgroup *g)
{
	osb_cleanup(fd_closep) int control = -1, event = -1;
	struct err e = ERR_NONE;
	char text[32];

	control = openat(cgroup_dir(g, PART_MEMORY), "memory.oom_control", O_RDONLY | O_CLOEXEC);
	event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (control < 0 || event < 0)
		return -1;
	snprintf(text, sizeof(text), "%d %d", event, control);
	if (knob_write(cgroup_dir(g, PART_MEMORY), "cgroup.event_control", text, &e) < 0)
		return -1;
	return take_fd(event);
}

int cgroup_oom_fd(struct cgroup *g)
{
	if (g->oom_fd < 0 && (g->host->capabilities & WARDEN_CAN_MEMORY)) {
		if (g->host->unified)
			g->oom_fd = openat(g->fd[0], "memory.events", O_RDONLY | O_CLOEXEC);
		else
			g->oom_fd = oom_eventfd(g);
		g->oom_fd = clone_hide_fd(g->oom_fd);
	}
	return g->oom_fd;
}

void cgroup_oom_seen(struct cgroup *g)
{
	char text[1024];

	if (g->host->unified)
		(void)!pread(g->oom_fd, text, sizeof(text), 0);
	else
		(void)!read(g->oom_fd, text, sizeof(uint64_t));
}

/* v1 knows no kill of a whole group: everything is signalled until nothing is left to signal. */
static void kill_v1(struct cgroup *g)
{
	int dir = cgroup_dir(g, PART_PIDS) >= 0 ? cgroup_dir(g, PART_PIDS)
						: cgroup_dir(g, PART_MEMORY);
	struct err e = ERR_NONE;
	struct view rest, line;
	char text[65536];

	if (dir < 0 || knob_read(dir, "cgroup.procs", text, sizeof(text), &e) < 0)
		return;
	rest = view_of(text);
	while (view_split(&rest, '\n', &line)) {
		uint32_t pid;

		if (num_parse_u32(line, &pid) && pid > 1)
			(void)kill((pid_t)pid, SIGKILL);
	}
}

void cgroup_kill(struct cgroup *g)
{
	struct err e = ERR_NONE;

	if (g->host->unified && knob_write(g->fd[0], "cgroup.kill", "1", &e) == 0)
		return;
	kill_v1(g);
	/* Frozen tasks take their signal when they thaw. */
	if (ask_freeze(g, false, &e) < 0)
		return;
	kill_v1(g);
}

int cgroup_remove(struct cgroup *g, struct err *e)
{
	int r = 0;

	for (int i = 0; i < PARTS_; i++) {
		if (g->host->parent_fd[i] < 0)
			continue;
		if (unlinkat(g->host->parent_fd[i], g->name, AT_REMOVEDIR) < 0 && errno != ENOENT)
			r = err_set(e, -errno, "rmdir cgroup %s: %m", g->name);
	}
	return r;
}
