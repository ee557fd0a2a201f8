/*
 * execd/shell.h - one persistent shell: runs queue up, come one at a time, and share its state.
 *
 * The shell process starts with the first run and stays.  When it ends (exit, exec, a kill), the
 * run reports that end, and the next run gets a new process that begins where the last complete
 * run left off: its variables, functions and aliases as far as the shell can print them, and
 * its directory.  Output that nobody waits for (background jobs between runs) is dropped, so
 * that it never blocks a job.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "execd/shell_script.h"

struct app;
struct err;
struct shell;
struct shell_run;
struct strv;

#define SHELL_COMMAND_MAX ((size_t)8 << 20)
#define SHELL_QUEUE_MAX	  64 /* runs that wait */

/* Who starts the shell's process, and where. */
struct shell_host {
	/*
	 * Starts a shell that reads its script from `control` and writes to `output` (both
	 * borrowed).  With `restored` its environment begins empty.  Says which shell it is.
	 * When the process ends, the host calls shell_exited().
	 */
	int (*start)(void *arg, int control, int output, bool restored, enum shell_kind *ret_kind,
		     struct err *e);
	/* Signals the shell's process group. */
	void (*signal)(void *arg, int signum);
};

enum shell_cause {
	SHELL_ENDED, /* by itself: `code`, or `status` when the process is gone */
	SHELL_TIMED_OUT,
	SHELL_INTERRUPTED,
	SHELL_CLOSED,	   /* the shell was freed */
	SHELL_NOT_STARTED, /* `e` says why */
};

struct shell_end {
	enum shell_cause cause;
	int code;	 /* of the command; -1: a signal or an interrupt ended it */
	bool shell_gone; /* the shell itself ended with it: `status` as of waitpid(2) */
	int status;
	uint64_t time_us;
	const struct err *e;
};

struct shell_job {
	struct view command; /* no NUL bytes */
	const char *cwd;     /* or NULL: where the shell is */
	const struct strv *envs;
	uint64_t timeout_ms; /* 0 = none; counts from the start of the run */
	/* Bytes as the run prints them.  False: no more until shell_run_resume(). */
	bool (*output)(void *arg, struct view bytes);
	/* Called once; the run is gone after it.  The shell must not be freed in here. */
	void (*done)(void *arg, const struct shell_end *end);
	void *arg;
};

osb_must_check int shell_new(struct app *app, const struct shell_host *host, void *arg,
			     const char *cwd, struct shell **ret, struct err *e);

/* Kills what runs and ends every run with SHELL_CLOSED.  Accepts NULL. */
void shell_free(struct shell *s);
DEFINE_CLEANUP(struct shell *, shell_free)

/* Queues a run; -EBUSY when too many wait.  Everything is copied.  No callback comes before this
 * returns. */
osb_must_check int shell_submit(struct shell *s, const struct shell_job *job,
				struct shell_run **ret, struct err *e);
void shell_run_resume(struct shell_run *r);

/* Ends a run: interrupts it, and kills it when that does not help.  `done` comes when it ended. */
void shell_run_interrupt(struct shell_run *r);

/* The same, but nobody listens any more: no callback comes. */
void shell_run_abandon(struct shell_run *r);

/* From the host: the process has ended. */
void shell_exited(struct shell *s, int status);

/* `s`, which has not run anything yet, begins with what `other` knows after its last complete run.
 */
void shell_follow(struct shell *s, struct shell *other);

bool shell_busy(const struct shell *s);
