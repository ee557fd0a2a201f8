/*
 * egress/settings.h - what the operator wants: the OPENSANDBOX_EGRESS_* variables, or flags of the
 * same names in lower case.
 *
 * One table says what there is; the help is made of it.  A sandbox may have some of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/strv.h"

struct err;
struct json;

#define SETTINGS_PREFIX "OPENSANDBOX_EGRESS_"

struct settings {
	/* Texts are never NULL; "" = not set. */
	const char *http_addr;	/* where the API is, alone: "HOST:PORT" */
	const char *token;	/* of the API, alone */
	const char *sandbox_id; /* alone */
	const char *rules;	/* the policy at the start, alone: JSON */
	const char *policy_file;
	const char *rules_dir; /* deny.always, allow.always, log_skip.always */
	uint32_t max_rules;    /* of one policy; 0 = any number */
	const char *mode;      /* "dns" or "dns+nft" */
	const char *refuse;    /* "reject" or "drop" */
	const char *log_level;
	bool log_decisions;	    /* one line each */
	const char *decisions_file; /* the same, as JSON */

	const char *dns_upstream; /* addresses with ports, commas between; "" = resolv.conf */
	uint32_t dns_upstream_timeout;
	const char *dns_upstream_probe; /* the name to probe with; "" = the root's servers */
	uint32_t dns_upstream_probe_interval_sec;
	const char *nameserver_exempt; /* addresses that may be asked past us */
	uint32_t lease_check_sec;      /* how often open connections are looked for */
	bool block_doh_443;
	const char *doh_blocklist; /* addresses and networks; "" = all of port 443 */
	const char *deny_webhook;

	bool mitmproxy_transparent; /* alone: there may be a vault */
	uint32_t mitmproxy_port;
	const char *mitmproxy_upstream_trust_dir;
	const char *mitmproxy_ca_file; /* alone: where the sandbox's authority is written */
	bool mitmproxy_ssl_insecure;
	bool credential_vault_require_tls;
	bool credential_vault_require_scoped_match;
	const char *credential_vault_trusted_proxy_cidrs;

	struct strv texts; /* owns what is not a literal */
};

void settings_init(struct settings *s); /* defaults */
void settings_done(struct settings *s);

/* All variables of the environment; those that nobody here knows are said on the log. */
osb_must_check int settings_from_environment(struct settings *s, char *const *environment,
					     struct err *e);

/* A sandbox's own, from an object of variables: only those that are a sandbox's business count. */
osb_must_check int settings_for_box(const struct settings *general, const struct json *variables,
				    struct settings *ret, struct err *e);

/* Do addresses count too, or names alone? */
bool settings_closed(const struct settings *s);

/* ---- the table, for the command line ---- */

size_t settings_n(void);
const char *settings_name(size_t i); /* without the prefix */
const char *settings_help(size_t i);
bool settings_secret(size_t i); /* has no flag: everybody reads command lines */
osb_must_check int settings_set(struct settings *s, size_t i, const char *value, struct err *e);
