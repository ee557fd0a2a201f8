/*
 * ingress/worker.h - the process that meets clients.
 */
#pragma once

struct options;
struct upstreams;

struct worker_means {
	const struct options *options;
	struct upstreams *upstreams; /* taken */
	const char *redis_ip;	     /* or NULL: no renew intents */
	int listen_fd;		     /* taken */
	int tls_fd;		     /* taken: the certificate and its key; -1 = no TLS */
	int keeper_fd; /* taken: new ones come over it; when it ends, so do we; -1 = nobody */
};

/* Until a signal ends it.  Returns the process's exit code. */
int worker_run(const struct worker_means *means);
