/*
 * egress/box.c - makes a box of a document, keeps its parts together, changes its policy.
 */
#include "egress/box.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"
#include "egress/box_change.h"
#include "egress/decisions.h"
#include "egress/dns_server.h"
#include "egress/enforce.h"
#include "egress/flow_log.h"
#include "egress/leases.h"
#include "egress/vault_proxy.h"

#define VARIABLES_MAX 16384

/* ---- parts ---- */

static int open_leases(struct box *b, struct err *e)
{
	(void)e;
	b->leases = leases_new(b);
	return 0;
}

static void close_leases(struct box *b)
{
	leases_free(take_ptr(b->leases));
}

static int open_decisions(struct box *b, struct err *e)
{
	(void)e;
	b->decisions = decisions_new(b);
	return 0;
}

static void close_decisions(struct box *b)
{
	decisions_free(take_ptr(b->decisions));
}

static int open_dns(struct box *b, struct err *e)
{
	return dns_server_new(b, &b->dns, e);
}

static void close_dns(struct box *b)
{
	dns_server_free(take_ptr(b->dns));
}

/* Nothing but what is said about it depends on it. */
static int open_flows(struct box *b, struct err *e)
{
	if (flow_log_new(b, &b->flows, e) < 0)
		log_line(LOG_WARN, "flows of a sandbox are not recorded", LOG_S("box", b->id),
			 LOG_S("err", e->msg));
	return 0;
}

static void close_flows(struct box *b)
{
	flow_log_free(take_ptr(b->flows));
}

/* Made in this order, ended in the other.  Sets come before those who answer: nobody is told an
 * address before the policy is in force. */
static const struct part {
	const char *name;
	int (*open)(struct box *b, struct err *e);
	void (*close)(struct box *b);
} parts[] = {
	{"decisions", open_decisions, close_decisions},
	{"leases", open_leases, close_leases},
	{"flows", open_flows, close_flows},
	{"policy", enforce_policy, NULL},
	{"names", open_dns, close_dns},
};

static int open_parts(struct box *b, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (parts[i].open(b, e) < 0)
			return err_ctx(e, "%s", parts[i].name);
	return 0;
}

static void close_parts(struct box *b)
{
	for (size_t i = ARRAY_LEN(parts); i-- > 0;)
		if (parts[i].close)
			parts[i].close(b);
}

/* ---- documents ---- */

static int read_variables(struct box *b, const struct json *v, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(VARIABLES_MAX);
	struct settings own;
	struct json_writer w;
	int r;

	json_writer_init(&w, &text);
	json_write_json(&w, v);
	if (json_writer_end(&w) < 0)
		return err_set(e, -E2BIG, "the settings of a sandbox are too large");
	r = settings_for_box(b->egress->settings, v, &own, e);
	if (r < 0)
		return r;
	settings_done(&b->own);
	b->own = own;
	free(b->variables);
	b->variables = v ? buf_take_str(&text) : NULL;
	return 0;
}

/* All but what belongs to a part. */
struct document {
	struct net_policy policy;
	struct view token;
	bool credential_proxy;
	const struct json *variables;
	const struct json *vault, *vault_hosts; /* NULL = none */
};

static int read_document(const struct json *v, struct document *ret, struct err *e)
{
	struct document d = {.token = VIEW("")};
	const struct json *policy = NULL;
	int r = json_field_object(v, "policy", &policy, e);

	if (r >= 0)
		r = json_field_string(v, "token", &d.token, e);
	if (r >= 0 && d.token.len >= sizeof(((struct box *)NULL)->token))
		r = err_set(e, -EINVAL, "token: too long");
	if (r >= 0)
		r = json_field_bool(v, "credentialProxy", &d.credential_proxy, e);
	if (r >= 0)
		r = json_field_object(v, "settings", &d.variables, e);
	d.vault = json_get(v, "vault");
	d.vault_hosts = json_get(v, "vaultHosts");
	/* Whoever kept it knew the limit. */
	if (r >= 0)
		r = net_policy_from_json(policy, /* max= */ 0, &d.policy, e);
	if (r < 0)
		return err_ctx(e, "document");
	*ret = d;
	return 0;
}

static void take_document(struct box *b, struct document *d)
{
	snprintf(b->token, sizeof(b->token), VIEW_FMT, VIEW_ARG(d->token));
	b->credential_proxy = d->credential_proxy;
	b->policy = d->policy;
	d->policy = NET_POLICY_NONE;
	box_merge(b, &b->policy, &b->effective);
}

void box_write_document(const struct box *b, struct json_writer *w)
{
	json_write_object(w);
	json_write_key(w, "policy");
	net_policy_write(&b->policy, w);
	json_put_cstr(w, "token", b->token);
	json_put_bool(w, "credentialProxy", b->credential_proxy);
	if (b->variables) {
		json_write_key(w, "settings");
		json_write_text(w, view_of(b->variables));
	}
	vault_proxy_write(b, w);
	json_write_object_end(w);
}

/* ---- life ---- */

/* A vault that cannot be read closes its proxy; the sandbox goes on without. */
static void take_vault(struct box *b, const struct document *d)
{
	struct err e = ERR_NONE;

	if (vault_proxy_restore(b, d->vault, d->vault_hosts, &e) < 0)
		log_line(LOG_ERROR, "a sandbox's vault is lost", LOG_S("box", b->id),
			 LOG_S("err", e.msg));
}

int box_new(struct egress *g, const char *id, const struct json *document,
	    const int fds[RUNTIME_NET_FDS], struct box **ret, struct err *e)
{
	struct box *b = mem_new(struct box);
	struct document d = {0};
	int r;

	b->egress = g;
	b->settings = &b->own;
	list_init(&b->changes);
	snprintf(b->id, sizeof(b->id), "%s", id);
	memcpy(b->fds, fds, sizeof(b->fds));
	r = read_document(document, &d, e);
	if (r == 0)
		r = read_variables(b, d.variables, e);
	if (r == 0) {
		take_document(b, &d);
		r = vault_proxy_new(b, &b->vault, e);
	}
	if (r == 0) {
		take_vault(b, &d);
		r = open_parts(b, e);
	}
	net_policy_done(&d.policy);
	if (r < 0) {
		box_free(b);
		return r;
	}
	*ret = b;
	return 0;
}

void box_free(struct box *b)
{
	if (!b)
		return;
	box_cancel_changes(b);
	vault_proxy_free(take_ptr(b->vault));
	close_parts(b);
	for (size_t i = 0; i < RUNTIME_NET_FDS; i++)
		fd_close(b->fds[i]);
	net_policy_done(&b->policy);
	net_policy_done(&b->effective);
	settings_done(&b->own);
	free(b->variables);
	free(b);
}

int box_update(struct box *b, const struct json *document, struct err *e)
{
	struct net_policy old, old_effective;
	struct document d = {0};
	int r = read_document(document, &d, e);

	if (r == 0)
		r = read_variables(b, d.variables, e);
	if (r < 0) {
		net_policy_done(&d.policy);
		return r;
	}
	/* What was not recorded yet is overruled by what comes now. */
	box_cancel_changes(b);
	old = b->policy;
	old_effective = b->effective;
	take_document(b, &d);
	/* Whoever has forgotten it learns it from us. */
	if (d.vault || !vault_proxy_knows(b))
		take_vault(b, &d);
	r = enforce_policy(b, e);
	if (r < 0) {
		net_policy_done(&b->policy);
		net_policy_done(&b->effective);
		b->policy = old;
		b->effective = old_effective;
		return r;
	}
	net_policy_done(&old);
	net_policy_done(&old_effective);
	return 0;
}

/* ---- what decides ---- */

bool box_allows_name(const struct box *b, const char *name, const struct net_rule **ret_rule)
{
	const struct net_rule *rule = net_policy_find_name(&b->effective, name);

	*ret_rule = rule;
	return rule ? rule->allow : b->effective.default_allow;
}

bool box_allows_address(const struct box *b, bool v6, const uint8_t bytes[16],
			const struct net_rule **ret_rule)
{
	const struct net_rule *found = NULL;

	for (size_t i = 0; i < b->effective.n; i++) {
		const struct net_rule *rule = &b->effective.rules[i];

		if (rule->kind != NET_ADDRESSES || !net_prefix_has(&rule->prefix, v6, bytes))
			continue;
		if (!found || (found->allow && !rule->allow))
			found = rule;
	}
	*ret_rule = found;
	return found ? found->allow : b->effective.default_allow;
}

bool box_allows_explicitly(const struct box *b, bool v6, const uint8_t bytes[16])
{
	const struct net_rule *rule;

	return box_allows_address(b, v6, bytes, &rule) && rule;
}

bool box_diverts(const struct box *b, const char *name)
{
	return vault_proxy_binds(b, name);
}

bool box_is_lenient(const struct box *b)
{
	return b->effective.mode != NET_ENFORCE;
}
