/*
 * egress/box.h - one policed sandbox: its policy and the parts that hold it to it.
 *
 * box.c makes and ends it and decides what happens when its policy changes; each part lives in a
 * file of its own and is known here by a pointer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/macro.h"
#include "base/view.h"
#include "egress/egress.h"
#include "egress/settings.h"
#include "policy/net_policy.h"
#include "runtime/runtime.h"

struct decisions;
struct dns_server;
struct err;
struct flow_log;
struct json;
struct json_writer;
struct leases;
struct vault_proxy;

struct box {
	struct egress *egress;
	char id[40];
	char token[64];			 /* what requests to its API must show; "" = nothing */
	struct settings own;		 /* the operator's, with those of the sandbox over them */
	const struct settings *settings; /* = &own */
	struct net_policy policy;	 /* the user's, as the API shows it */
	struct net_policy effective;	 /* the operator's lists before it: what decides */
	bool credential_proxy;		 /* a vault may be made; its CA is trusted inside */
	char *variables; /* the sandbox's own settings as they came, JSON; NULL = none */
	int fds[RUNTIME_NET_FDS];
	struct list changes;	/* struct change; the first one is under way */
	uint64_t change_serial; /* of the worker's record; 0 = nothing is being recorded */
	struct leases *leases;
	struct dns_server *dns;
	struct flow_log *flows;
	struct decisions *decisions;
	struct vault_proxy *vault;
};

/* From a document (codec/egress_msg.h).  `fds` are taken, also on failure.  When it returns, the
 * kernel holds what the document says. */
osb_must_check int box_new(struct egress *g, const char *id, const struct json *document,
			   const int fds[RUNTIME_NET_FDS], struct box **ret, struct err *e);
void box_free(struct box *b); /* accepts NULL; the kernel stays as it is */

/* The same sandbox, said anew; nothing that is under way is disturbed.  On failure all is as it
 * was. */
osb_must_check int box_update(struct box *b, const struct json *document, struct err *e);

/* What the worker keeps: policy, token, vault. */
void box_write_document(const struct box *b, struct json_writer *w);

/*
 * A new policy: kernel first, then the worker's record, then it counts.  On any failure the old one
 * holds again, and `done` says so.  `policy` is taken.  `done` is called exactly once, maybe before
 * this returns; its `e` is NULL on success.  Changes of one box wait for each other.
 */
typedef void box_changed_fn(void *arg, const struct err *e);
void box_change_policy(struct box *b, struct net_policy *policy, box_changed_fn *done, void *arg);

/* The vault or something else in the document has changed: the worker's record alone. */
void box_save(struct box *b, box_changed_fn *done, void *arg);

/* The worker's answer to what control_save() sent, or why there will be none; `e` is NULL if all is
 * well. */
void box_saved(struct box *b, const struct err *e);

/* The operator's lists have changed. */
void box_lists_changed(struct box *b);

/* What decides about a name, or about an address that no name led to.  *ret_rule: NULL = the
 * default.  Lenient modes do not show here.  Among rules about addresses a denial goes before any
 * permission, wherever it stands. */
bool box_allows_name(const struct box *b, const char *name, const struct net_rule **ret_rule);
bool box_allows_address(const struct box *b, bool v6, const uint8_t bytes[16],
			const struct net_rule **ret_rule);

/* Does a rule about addresses allow it, and none deny it? */
bool box_allows_explicitly(const struct box *b, bool v6, const uint8_t bytes[16]);

/* Does the vault have business with that name? */
bool box_diverts(const struct box *b, const char *name);

/* Nothing but what the operator's own lists deny is refused, everything is recorded. */
bool box_is_lenient(const struct box *b);
