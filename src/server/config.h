/*
 * server/config.h - the configuration: one table says every key, its type, default and meaning.
 *
 * docs/configuration.md and `init-config` are written from the same table.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/strv.h"

struct err;
struct route_key;

#define CONFIG_CODE_POOL_MAX 32 /* interpreters that one sandbox may start ahead */

struct config_alias {
	char *pattern; /* glob over image references: "opensandbox/code-interpreter:*" */
	char *image;   /* "host", or the name of an image */
};

struct config_mirror {
	char *registry;	  /* "docker.io" */
	struct strv urls; /* asked before it, in this order */
};

struct config {
	/* [server] */
	char *host;
	int64_t port;
	char *api_key;			     /* NULL = none */
	char *eip;			     /* or NULL */
	int64_t max_sandbox_timeout_seconds; /* 0 = none */
	int64_t timeout_keep_alive, timeout_graceful_shutdown;
	int64_t limit_concurrency, backlog;
	char *tls_cert, *tls_key; /* paths, or NULL */
	/* [log] */
	char *log_level;
	/* [runtime] */
	char *runtime_type; /* "native" */
	/* [native] */
	char *state_dir;
	char *user;	 /* the server's own user; default "nobody" */
	char *subnet;	 /* "10.213.0.0/16"-like */
	char *code_pool; /* interpreters that sandboxes start ahead, like "python:1"; or NULL */
	bool network;
	bool exec_token;
	int64_t pids_limit, max_sandboxes, max_concurrent_creates, max_concurrent_requests, seeds;
	struct config_alias *aliases;
	size_t aliases_n;
	/* [images] */
	char *pull_policy; /* "IfNotPresent", "Always", "Never"; case ignored */
	int64_t create_wait_seconds;
	uint64_t images_max_bytes, images_max_image_bytes; /* 0 = no limit */
	int64_t images_max_age_seconds;			   /* 0 = no limit */
	struct strv insecure_registries;
	char *docker_config;	  /* path, or NULL */
	char *docker_config_text; /* what was there at the start, or NULL */
	struct config_mirror *mirrors;
	size_t mirrors_n;
	/* [storage] */
	struct strv allowed_host_paths;
	char *ossfs_program; /* or NULL: whichever is installed */
	/* [egress] */
	char *egress_mode;   /* "dns+nft", "dns" */
	char *egress_refuse; /* "reject", "drop" */
	struct strv egress_dns_upstream;
	int64_t egress_dns_upstream_timeout, egress_max_rules;
	char *egress_rules_dir;
	char *egress_deny_webhook; /* or NULL */
	/* [ingress] */
	char *ingress_mode; /* "direct", "gateway" */
	bool ingress_gateway;
	int64_t ingress_resume_wait_seconds, ingress_answer_timeout_seconds;
	char *gateway_address, *gateway_route_mode; /* or NULL */
	int gateway_mode;			    /* enum preview_mode, of a gateway */
	char *ingress_active_key;		    /* or NULL: no routes are signed */
	struct route_key *ingress_keys;
	size_t ingress_keys_n;
	/* [renew_intent] */
	bool renew_enabled;
	int64_t renew_min_interval_seconds;
};

/* Warnings (unknown keys with their line, keys without effect here) go to `warn`. */
typedef void config_warn_fn(void *arg, const char *sentence);

osb_must_check int config_load(const char *path, config_warn_fn *warn, void *arg,
			       struct config *ret, struct err *e);
void config_done(struct config *c);
