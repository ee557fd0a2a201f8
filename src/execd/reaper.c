/*
 * execd/reaper.c - waits for children in turns, so that a fork bomb's dead do not hold up the loop.
 */
#include "execd/reaper.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/loop.h"

#define SCAN_BATCH 256

struct child {
	reaper_ended_fn *ended;
	void *arg;
};

struct reaper {
	struct map *children; /* by pid */
	struct loop_signal *signal;
	struct loop_task *task;
};

static struct view key_of(const pid_t *pid)
{
	return view_mem(pid, sizeof(*pid));
}

static void scan(void *arg)
{
	struct reaper *r = arg;

	for (int i = 0; i < SCAN_BATCH; i++) {
		siginfo_t info = {0};
		struct child *known;

		/* Only a look first: a child that somebody waits for is reaped by its owner. */
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0) {
			if (errno == EINTR)
				continue;
			return;
		}
		if (info.si_pid == 0)
			return;
		known = map_get(r->children, key_of(&info.si_pid));
		if (!known)
			(void)waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG | __WALL);
		else if (!known->ended(known->arg, /* final= */ false))
			return;
	}
	loop_task_post(r->task);
}

static void on_signal(void *arg, int signum)
{
	scan(arg);
}

int reaper_new(struct loop *l, bool init, struct reaper **ret, struct err *e)
{
	struct reaper *r = mem_new(struct reaper);

	r->children = map_new();
	if (init) {
		r->task = loop_task_new(l, scan, r);
		if (loop_signal_new(l, SIGCHLD, on_signal, r, &r->signal, e) < 0) {
			reaper_free(r);
			return e->code;
		}
		loop_task_post(r->task);
	}
	*ret = r;
	return 0;
}

/* Nobody outlives us who could not be found again. */
static void kill_all(struct reaper *r)
{
	struct view key;
	size_t pos = 0;
	void *value;

	while (map_next(r->children, &pos, &key, &value)) {
		struct child c = *(struct child *)value;
		siginfo_t info;
		pid_t pid;

		memcpy(&pid, key.p, sizeof(pid));
		(void)kill(-pid, SIGKILL);
		while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | __WALL) < 0 &&
		       errno == EINTR)
			;
		(void)c.ended(c.arg, /* final= */ true);
		reaper_remove(r, pid);
		pos = 0;
	}
}

void reaper_free(struct reaper *r)
{
	if (!r)
		return;
	loop_signal_free(r->signal);
	loop_task_free(r->task);
	r->task = NULL;
	kill_all(r);
	map_free(r->children);
	free(r);
}

void reaper_add(struct reaper *r, pid_t pid, reaper_ended_fn *ended, void *arg)
{
	struct child *c = mem_new(struct child);

	c->ended = ended;
	c->arg = arg;
	free(map_put(r->children, key_of(&pid), c));
}

void reaper_remove(struct reaper *r, pid_t pid)
{
	free(map_remove(r->children, key_of(&pid)));
}

void reaper_scan(struct reaper *r)
{
	if (r->task)
		loop_task_post(r->task);
}
