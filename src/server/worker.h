/*
 * server/worker.h - the network-facing process: parses everything that clients send, and therefore
 * holds no privileges.
 */
#pragma once

#include "server/privileges.h"

struct config;

struct worker_means {
	const struct config *config;
	struct privileges privileges;
	int listen_fd;	   /* taken */
	int tls_fd;	   /* taken: the certificate and its key; -1 = no TLS */
	int supervisor_fd; /* taken: connections to wardens come over it; when it ends, so do we */
};

/* In a process of its own, still as root.  Returns its exit code. */
int worker_run(const struct worker_means *means);
