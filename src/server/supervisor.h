/*
 * server/supervisor.h - starts the warden and the worker, and again when one of them dies.
 */
#pragma once

#include "server/privileges.h"

struct config;

struct supervisor_means {
	const struct config *config;
	struct privileges privileges; /* of the worker */
	const char *warden, *execd;   /* programs */
	int lock_fd;		      /* of the state directory; taken */
	int listen_fd;		      /* taken */
};

/* Until a signal ends it.  Returns the program's exit code. */
int supervisor_run(const struct supervisor_means *means);
