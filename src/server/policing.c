/*
 * server/policing.c - the policy is a part of the sandbox's record: what egress says has changed is
 * on disk before it counts.
 */
#include "server/policing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "policy/net_policy.h"
#include "policy/vault.h"
#include "server/egress_client.h"
#include "server/sandboxes_int.h"

#define POLICY_MAX (4u << 20)
#define ALLOW_ALL  "{\"defaultAction\":\"allow\",\"egress\":[]}"

bool policing_is_on(const struct sandbox *b)
{
	return b->spec.network.policy != NULL;
}

/* ---- documents ---- */

static void describe(void *arg, const char *id, struct json_writer *w)
{
	struct sandboxes *s = arg;
	const struct sandbox *b = map_get(s->by_id, view_of(id));
	const struct sandbox_network *n;

	if (!b || !b->spec.network.policy)
		return;
	n = &b->spec.network;
	json_write_key(w, "policy");
	json_write_text(w, view_of(n->policy));
	json_put_cstr(w, "token", n->token);
	json_put_bool(w, "credentialProxy", n->credential_proxy);
	json_write_key(w, "settings");
	json_write_object(w);
	for (size_t i = 0; i < n->settings.n; i++)
		json_put_cstr(w, n->settings.v[i].name, n->settings.v[i].value);
	json_write_object_end(w);
	json_write_key(w, "vaultHosts");
	json_write_array(w);
	for (size_t i = 0; i < n->vault_hosts.len; i++)
		json_write_cstr(w, n->vault_hosts.v[i]);
	json_write_array_end(w);
}

/* The policy of a document, written as ours are; the caller owns it. */
static int policy_of(const struct json *document, char **ret, struct net_policy *ret_policy,
		     struct err *e)
{
	struct buf text = BUF_INIT(POLICY_MAX);
	struct json_writer w;
	int r = net_policy_from_json(json_get(document, "policy"), 0, ret_policy, e);

	if (r < 0)
		return r;
	json_writer_init(&w, &text);
	net_policy_write(ret_policy, &w);
	r = json_writer_end(&w);
	if (r < 0) {
		net_policy_done(ret_policy);
		buf_done(&text);
		return err_set(e, r, "the policy is too large");
	}
	*ret = buf_take_str(&text);
	return 0;
}

static bool matches(void *arg, const char *id, const struct json *document)
{
	osb_cleanup(net_policy_done) struct net_policy policy = NET_POLICY_NONE;
	osb_cleanup(mem_freep) char *text = NULL;
	struct sandboxes *s = arg;
	const struct sandbox *b = map_get(s->by_id, view_of(id));
	struct view token = VIEW_NONE;
	struct err e = ERR_NONE;

	return b && policing_is_on(b) && policy_of(document, &text, &policy, &e) == 0 &&
	       strcmp(text, b->spec.network.policy) == 0 &&
	       json_str(json_get(document, "token"), &token) &&
	       bytes_equal_secret(token, view_of(b->spec.network.token));
}

/* ---- the record ---- */

static int keep_policy(struct sandboxes *s, struct sandbox *b, char **policy, const char *reason,
		       const char *message, struct err *e)
{
	char *before = b->spec.network.policy;
	int r;

	b->spec.network.policy = *policy;
	free(take_ptr(b->spec_text));
	r = sandboxes_record(s, b, "Normal", reason, message, e);
	if (r < 0) {
		b->spec.network.policy = before;
		free(take_ptr(b->spec_text));
		return r;
	}
	*policy = before; /* the caller's to free */
	return 0;
}

static bool same_hosts(const struct strv *a, const struct strv *b)
{
	bool same = a->len == b->len;

	for (size_t i = 0; i < a->len && same; i++)
		same = strcmp(a->v[i], b->v[i]) == 0;
	return same;
}

/* Which hosts the vault binds, so that they are closed when it is lost; its secrets are not for
 * disks. */
static int keep_hosts(struct sandboxes *s, struct sandbox *b, const struct json *document,
		      struct err *e)
{
	osb_cleanup(strv_done) struct strv hosts = STRV_INIT;
	struct strv before = b->spec.network.vault_hosts;
	char message[96];
	int r = vault_hosts_read(json_get(document, "vaultHosts"), &hosts, e);

	if (r < 0 || same_hosts(&hosts, &before))
		return r;
	snprintf(message, sizeof(message), "the credential vault binds %zu hosts", hosts.len);
	b->spec.network.vault_hosts = hosts;
	free(take_ptr(b->spec_text));
	r = sandboxes_record(s, b, "Normal", "CredentialVaultChanged", message, e);
	if (r < 0) {
		b->spec.network.vault_hosts = before;
		free(take_ptr(b->spec_text));
		return r;
	}
	hosts = before;
	return 0;
}

/* What was recorded and not heard of by egress before a worker died did not happen. */
static int found(void *arg, const char *id, const struct json *document, struct err *e)
{
	struct sandboxes *s = arg;
	struct sandbox *b = map_get(s->by_id, view_of(id));

	return b && policing_is_on(b) ? keep_hosts(s, b, document, e) : 0;
}

static int changed(void *arg, const char *id, const struct json *document, struct err *e)
{
	osb_cleanup(net_policy_done) struct net_policy policy = NET_POLICY_NONE;
	osb_cleanup(mem_freep) char *text = NULL;
	struct sandboxes *s = arg;
	struct sandbox *b = map_get(s->by_id, view_of(id));
	char message[96];
	int r;

	if (!b || b->hidden || !policing_is_on(b))
		return err_set(e, -ENOENT, "there is no such sandbox");
	r = policy_of(document, &text, &policy, e);
	if (r == 0)
		r = keep_hosts(s, b, document, e);
	/* Something else of it may have changed, which is not kept here. */
	if (r < 0 || strcmp(text, b->spec.network.policy) == 0)
		return r;
	snprintf(message, sizeof(message), "the network policy was changed: %s, %zu rules",
		 net_policy_mode(&policy), policy.n);
	return keep_policy(s, b, &text, "NetworkPolicyChanged", message, e);
}

const struct egress_client_events policing_events = {
	.describe = describe,
	.matches = matches,
	.found = found,
	.changed = changed,
};

/* One of before there were tokens has got its own just now. */
static void keep_token(struct sandboxes *s, struct sandbox *b)
{
	struct err e = ERR_NONE;

	if (!b->spec_text && sandboxes_save(s, b, &e) < 0)
		log_line(LOG_WARN, "cannot keep a sandbox's token, another start makes another",
			 LOG_S("box", b->id), LOG_S("err", e.msg));
}

void policing_set_egress(struct sandboxes *s, struct egress_client *c)
{
	s->egress = c;
	if (!c)
		return;
	list_each_safe (it, next, &s->all) {
		struct sandbox *b = list_entry(it, struct sandbox, link);

		keep_token(s, b);
		if (policing_is_on(b) && b->handle.pid > 0 && !sandbox_is_over(b))
			egress_client_hold(c, b->id, NULL, NULL);
	}
}

/* ---- beginning with it ---- */

int policing_possible(const struct sandboxes *s, struct failure *f)
{
	const struct runtime *r = s->runtime;

	/* Nothing is known of a warden that never came; then the create itself will tell. */
	if (r->ops->netwatch && (r->capabilities == 0 || r->capabilities & SANDBOXES_CAN_POLICE))
		return 0;
	return failure_set(f, 501, "SANDBOX::API_NOT_SUPPORTED",
			   "this host cannot enforce network policies%s%.150s",
			   r->missing[0] ? ": " : "", r->missing);
}

struct beginning {
	policing_fn *fn;
	void *arg;
};

static void held(void *arg, const struct err *e)
{
	osb_cleanup(mem_freep) struct beginning *g = arg;
	struct failure f = FAILURE_NONE;

	if (e) {
		failure_set(&f, 503, "SANDBOX::NETWORK_POLICY_UNAVAILABLE",
			    "the sandbox's network policy cannot be reached: %s", e->msg);
		f.retry_after_s = 1;
	}
	g->fn(g->arg, e ? &f : NULL);
}

/* On disk first: a namespace that was closed must not be without a policy after a restart. */
static int turn_on(struct sandboxes *s, struct sandbox *b, struct failure *f)
{
	osb_cleanup(mem_freep) char *policy = NULL;
	struct err e = ERR_NONE;

	if (policing_possible(s, f) < 0)
		return -1;
	policy = mem_strdup(ALLOW_ALL);
	if (keep_policy(s, b, &policy, "NetworkPolicyEnabled", "the network is policed from now on",
			&e) < 0)
		return failure_set(f, 500, "SANDBOX::INTERNAL_ERROR", "%s", e.msg);
	return 0;
}

void policing_begin(struct sandboxes *s, struct sandbox *b, policing_fn *fn, void *arg)
{
	struct failure f = FAILURE_NONE;
	struct beginning *g;

	if (!policing_is_on(b) && turn_on(s, b, &f) < 0) {
		fn(arg, &f);
		return;
	}
	g = mem_new(struct beginning);
	g->fn = fn;
	g->arg = arg;
	egress_client_hold(s->egress, b->id, held, g);
}

void policing_end(struct sandboxes *s, const struct sandbox *b)
{
	if (s->egress)
		egress_client_leave(s->egress, b->id);
}
