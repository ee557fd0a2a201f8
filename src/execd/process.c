/*
 * execd/process.c - one child, its pidfd in the loop, and its end told once.
 *
 * A process that was asked to terminate stays a zombie until its grace is over: as long as it is
 * not reaped, its process group id is ours, and what is left of the group can be killed safely.
 */
#include "execd/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "execd/app.h"
#include "execd/identity.h"
#include "execd/reaper.h"
#include "net/loop.h"

struct process {
	struct app *app;
	pid_t pid;
	int pidfd;
	struct loop_fd *watch;
	struct loop_timer *grace; /* runs while SIGKILL is due */
	process_exit_fn *exited;  /* NULL once told, or when nobody wants to know */
	void *arg;
	bool running; /* has not ended */
	bool reaped;
	int group_signal; /* sent to all of the group, to end it; 0 = none */
	bool freed;	  /* by its owner; goes when reaped */
};

static void destroy(struct process *p)
{
	loop_fd_free(p->watch);
	loop_timer_free(p->grace);
	fd_close(p->pidfd);
	free(p);
}

static void reap(struct process *p)
{
	int status;

	if (p->reaped)
		return;
	/* A child that was being forked when the group was signalled has missed it.  While the
	 * leader is not reaped, the group's number is nobody else's. */
	if (p->group_signal)
		(void)kill(-p->pid, p->group_signal);
	/* A failure here means that somebody else reaped it: gone is gone. */
	(void)!spawn_reap(p->pidfd, &status);
	p->reaped = true;
	reaper_remove(p->app->reaper, p->pid);
	reaper_scan(p->app->reaper);
}

static bool grace_running(const struct process *p)
{
	return p->grace && loop_timer_active(p->grace);
}

static void bury(struct process *p)
{
	reap(p);
	if (p->freed)
		destroy(p);
}

/* The child has ended.  Returns whether it was reaped. */
static bool on_ended(void *arg, bool final)
{
	struct process *p = arg;
	process_exit_fn *exited = p->exited;
	bool hold = grace_running(p) && !final;
	int status = W_EXITCODE(255, 0);

	if (p->running) {
		if (spawn_peek(p->pidfd, &status) == -EAGAIN)
			return false;
		p->running = false;
		loop_fd_free(p->watch);
		p->watch = NULL;
		p->exited = NULL;
	} else {
		exited = NULL;
	}
	if (hold) {
		/* The callback may free it, which then waits for the end of the grace. */
		if (exited)
			exited(p->arg, status);
		return false;
	}
	if (!exited) {
		bury(p);
		return true;
	}
	reap(p);
	exited(p->arg, status);
	return true;
}

static void on_pidfd(void *arg, int fd, unsigned events)
{
	(void)on_ended(arg, /* final= */ false);
}

static void on_grace(void *arg)
{
	struct process *p = arg;

	(void)kill(-p->pid, SIGKILL);
	if (!p->running)
		bury(p);
}

int process_adopt(struct app *app, pid_t pid, int pidfd, process_exit_fn *exited, void *arg,
		  struct process **ret, struct err *e)
{
	struct process *p = mem_new(struct process);
	int r;

	p->app = app;
	p->pid = pid;
	p->pidfd = pidfd;
	p->running = true;
	p->exited = exited;
	p->arg = arg;
	reaper_add(app->reaper, p->pid, on_ended, p);
	r = loop_fd_new(app->loop, p->pidfd, on_pidfd, p, &p->watch, e);
	if (r < 0) {
		(void)kill(p->pid, SIGKILL);
		(void)!waitpid(p->pid, NULL, 0);
		reaper_remove(app->reaper, p->pid);
		destroy(p);
		return r;
	}
	loop_fd_want(p->watch, LOOP_READ);
	*ret = p;
	return 0;
}

int process_start(struct app *app, const struct spawn *spec, process_exit_fn *exited, void *arg,
		  struct process **ret, struct err *e)
{
	struct spawn limited = *spec;
	int pidfd = -1;
	pid_t pid = -1;
	int r;

	if (app->nofile.rlim_max > 0)
		limited.nofile = &app->nofile;
	limited.filter = app->filter;
	identity_apply(app->identity, &limited);
	r = spawn(&limited, &pid, &pidfd, e);
	return r < 0 ? r : process_adopt(app, pid, pidfd, exited, arg, ret, e);
}

pid_t process_pid(const struct process *p)
{
	return p->pid;
}

bool process_running(const struct process *p)
{
	return p->running;
}

void process_signal(struct process *p, int signum, bool group)
{
	if (p->reaped)
		return;
	if (group && (signum == SIGKILL || (signum == SIGINT && p->group_signal != SIGKILL)))
		p->group_signal = signum;
	(void)kill(group ? -p->pid : p->pid, signum);
}

void process_own_group(struct process *p)
{
	p->group_signal = SIGKILL;
}

void process_terminate(struct process *p, unsigned grace_ms)
{
	if (p->reaped || grace_running(p))
		return;
	if (!p->grace)
		p->grace = loop_timer_new(p->app->loop, on_grace, p);
	loop_timer_start(p->grace, grace_ms);
	(void)kill(-p->pid, SIGTERM);
}

void process_free(struct process *p)
{
	if (!p)
		return;
	p->exited = NULL;
	p->freed = true;
	if (p->reaped)
		destroy(p);
}

int process_exit_code(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *signal_word(int signum)
{
	switch (signum) {
	case SIGKILL:
		return "killed";
	case SIGTERM:
		return "terminated";
	case SIGINT:
		return "interrupt";
	case SIGHUP:
		return "hangup";
	case SIGSEGV:
		return "segmentation fault";
	case SIGABRT:
		return "aborted";
	case SIGPIPE:
		return "broken pipe";
	default:
		return NULL;
	}
}

const char *process_describe(int status, char ret[64])
{
	const char *word;

	if (WIFEXITED(status)) {
		snprintf(ret, 64, "exit status %d", WEXITSTATUS(status));
		return ret;
	}
	word = signal_word(WTERMSIG(status));
	if (word)
		snprintf(ret, 64, "signal: %s%s", word, WCOREDUMP(status) ? " (core dumped)" : "");
	else
		snprintf(ret, 64, "signal: %d%s", WTERMSIG(status),
			 WCOREDUMP(status) ? " (core dumped)" : "");
	return ret;
}
