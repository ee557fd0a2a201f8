/*
 * egress/box.h - one policed sandbox: its policy and the parts that hold it to it.
 *
 * box.c makes and ends it and decides what happens when its policy changes; each part lives in a
 * file of its own and is known here by a pointer.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"
#include "base/view.h"
#include "egress/egress.h"
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
	char token[64];		     /* what requests to its API must show; "" = nothing */
	struct net_policy policy;    /* the user's, as the API shows it */
	struct net_policy effective; /* the operator's lists before it: what decides */
	bool credential_proxy;	     /* a vault may be made; its CA is trusted inside */
	int fds[RUNTIME_NET_FDS];
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

/* What the worker keeps: policy, token, vault. */
void box_write_document(const struct box *b, struct json_writer *w);

/*
 * A new policy: kernel first, then the worker's record, then it counts.  On any failure the old one
 * holds again, and `done` says so.  `policy` is taken.  `done` is called exactly once, maybe before
 * this returns.
 */
typedef void box_changed_fn(void *arg, const struct err *e);
void box_change_policy(struct box *b, struct net_policy *policy, box_changed_fn *done, void *arg);

/* The vault or something else in the document has changed: the worker's record alone. */
void box_save(struct box *b, box_changed_fn *done, void *arg);

/* The operator's lists have changed. */
void box_lists_changed(struct box *b);

/* What decides about a name, or about an address that no name led to.  *ret_rule: NULL = the
 * default.  Lenient modes do not show here. */
bool box_allows_name(const struct box *b, const char *name, const struct net_rule **ret_rule);
bool box_allows_address(const struct box *b, bool v6, const uint8_t bytes[16],
			const struct net_rule **ret_rule);

/* Nothing is refused, everything is recorded. */
bool box_is_lenient(const struct box *b);
