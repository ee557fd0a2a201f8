/*
 * box/cgroup_recycle.c - an emptied cgroup made as new for the next sandbox.
 *
 * When a memory cgroup goes, the kernel walks the lists of every mounted file system; one that
 * stays saves that, however many sandboxes there are.  Only v1 can set its counters back to zero,
 * so only there it is done.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "box/cgroup.h"
#include "box/cgroup_int.h"

/* What little an ended sandbox leaves behind: some caches of files that others may use, too. */
#define CHARGED_MAX (UINT64_C(2) << 20)

/* Nothing inside, and nothing happened that cannot be wiped: kills are counted for ever. */
static int check(const struct cgroup *g, struct err *e)
{
	int memory = cgroup_dir(g, PART_MEMORY), pids = cgroup_dir(g, PART_PIDS);

	if (g->froze || g->host->unified || memory < 0 || pids < 0)
		return err_set(e, -EOPNOTSUPP, "it cannot be set back");
	if (knob_read_u64(pids, "pids.current", 1) != 0)
		return err_set(e, -EBUSY, "something lives in it");
	if (knob_read_field(memory, "memory.oom_control", "oom_kill", 1) != 0)
		return err_set(e, -EBUSY, "memory ran out in it");
	if (knob_read_u64(memory, "memory.usage_in_bytes", UINT64_MAX) > CHARGED_MAX)
		return err_set(e, -EBUSY, "memory is charged to it");
	return 0;
}

static int zero(int dir, const char *knob, struct err *e)
{
	struct err here = ERR_NONE;
	int r = dir < 0 ? 0 : knob_write(dir, knob, "0", &here);

	/* A kernel without swap accounting, or without that counter. */
	return r == 0 || r == -ENOENT ? 0 : err_set(e, r, "%s", here.msg);
}

static int zero_counters(const struct cgroup *g, struct err *e)
{
	static const char *const counters[] = {
		"memory.failcnt",
		"memory.memsw.failcnt",
		"memory.max_usage_in_bytes",
		"memory.memsw.max_usage_in_bytes",
	};
	int r = zero(cgroup_dir(g, PART_CPUACCT), "cpuacct.usage", e);

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(counters); i++)
		r = zero(cgroup_dir(g, PART_MEMORY), counters[i], e);
	return r;
}

/* For the child to see; cgroup_settle() moves them away again. */
static int show_fds(struct cgroup *g, struct err *e)
{
	for (int i = 0; i < PARTS_; i++) {
		int low = g->fd[i] < 0 ? -1 : fcntl(g->fd[i], F_DUPFD_CLOEXEC, 0);

		if (low < 0 && g->fd[i] >= 0)
			return err_set(e, -errno, "dup: %m");
		fd_close(g->fd[i]);
		g->fd[i] = low;
	}
	return 0;
}

int cgroup_recycle(struct cgroup *g, struct err *e)
{
	int r = check(g, e);

	if (r == 0)
		r = cgroup_unlimit(g, e);
	if (r == 0)
		r = zero_counters(g, e);
	return r < 0 ? r : show_fds(g, e);
}
