/*
 * ingress/options.h - the command line.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/macro.h"
#include "base/strv.h"
#include "codec/redis.h"
#include "policy/preview.h"

struct err;

struct options {
	bool help, version;
	const char *host;
	uint16_t port;
	enum preview_mode mode; /* PREVIEW_HEADER or PREVIEW_URI */
	enum log_level level;
	struct strv servers; /* URLs, in the order in which they are asked */
	char *api_key;	     /* or NULL */
	struct route_key *keys;
	size_t keys_n;
	const char *tls_cert, *tls_key; /* or NULL */
	const char *server_ca;		/* or NULL */
	bool trust_forwarded;
	const char *user;
	bool namespace_given; /* it has no meaning any more */
	bool renew;
	struct redis_url redis;
	const char *queue_key;
	uint32_t queue_max_len;	 /* 0 = no limit */
	uint32_t min_interval_s; /* 0 = none */
};

extern const char options_help[];

/* Secrets in argv are wiped. */
osb_must_check int options_parse(int argc, char **argv, struct options *ret, struct err *e);
void options_done(struct options *o);
