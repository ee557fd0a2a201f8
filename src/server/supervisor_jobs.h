/*
 * server/supervisor_jobs.h - programs that the supervisor runs for the worker: `opensandbox-image`.
 *
 * The worker names a mode and sends the socket that the program talks to it with; nothing else of
 * what the worker says reaches a command line.  A job ends with the supervisor.
 */
#pragma once

#include <sys/types.h>

#include "base/macro.h"
#include "base/view.h"
#include "server/privileges.h"

struct err;

#define SUPERVISOR_JOBS_MAX 32

struct supervisor_jobs {
	const char *program;	      /* opensandbox-image */
	const char *state_dir;	      /* absolute */
	const char *bucket_program;   /* or NULL: whichever is installed */
	struct privileges privileges; /* of jobs that use the network */
	pid_t pids[SUPERVISOR_JOBS_MAX];
	size_t n;
};

/* A request of the worker's: "job fetch", "job push", "job files" or "job bucket"; `fd` is
 * borrowed. */
osb_must_check int supervisor_jobs_start(struct supervisor_jobs *j, struct view request, int fd,
					 struct err *e);

void supervisor_jobs_ended(struct supervisor_jobs *j, pid_t pid); /* forgets it, if it is one */
void supervisor_jobs_kill(struct supervisor_jobs *j);		  /* all of them */
