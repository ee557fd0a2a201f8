/*
 * server/supervisor.h - starts the warden, egress and the worker, and again when one of them dies.
 */
#pragma once

#include "server/privileges.h"
#include "server/state_dir.h"

struct config;
struct tls_files;

struct supervisor_means {
	const struct config *config;
	struct privileges privileges;	    /* of the worker */
	const char *warden, *execd, *image; /* programs */
	const char *egress;		    /* the same, or NULL: it is not there */
	struct state_dir_locks locks;	    /* taken */
	int listen_fd;			    /* taken */
	struct tls_files *tls;		    /* taken; or NULL: clients speak in the clear */
};

/* Until a signal ends it.  Returns the program's exit code. */
int supervisor_run(const struct supervisor_means *means);
