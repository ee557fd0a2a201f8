/*
 * execd/process.h - a started program and the news of its end.
 *
 * Built on sys/spawn; the loop watches the pidfd.  Every process leads its own process group, so
 * that signals reach all of what it started.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/macro.h"
#include "sys/spawn.h"

struct app;
struct err;
struct process;

/* `status` as of waitpid(2).  Called once, from the loop; the process may be freed in it. */
typedef void process_exit_fn(void *arg, int status);

osb_must_check int process_start(struct app *app, const struct spawn *spec, process_exit_fn *exited,
				 void *arg, struct process **ret, struct err *e);

/* The same for a child that was forked elsewhere; `pidfd` is taken, also on failure (which kills
 * the child). */
osb_must_check int process_adopt(struct app *app, pid_t pid, int pidfd, process_exit_fn *exited,
				 void *arg, struct process **ret, struct err *e);
pid_t process_pid(const struct process *p);
bool process_running(const struct process *p);

/* To the whole group while the leader has not been reaped; to the leader alone with `group` false.
 */
void process_signal(struct process *p, int signum, bool group);

/* When it ends, however that comes, what is left of its group is killed. */
void process_own_group(struct process *p);

/* SIGTERM to the group, and SIGKILL after `grace_ms` if it is still there. */
void process_terminate(struct process *p, unsigned grace_ms);

/* Accepts NULL.  A process that still runs is left to the reaper: kill it first if it must go. */
void process_free(struct process *p);

/* Exit code as the protocol has it: the code, or -1 for a signal. */
int process_exit_code(int status);

/* "exit status 3", "signal: killed": for tracebacks.  Static or in `ret`. */
const char *process_describe(int status, char ret[64]);
