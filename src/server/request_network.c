/*
 * server/request_network.c - a policy is checked whole before anything is made for it.
 */
#include "server/request_network.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "policy/net_policy.h"
#include "server/config.h"
#include "server/egress_settings.h"
#include "server/failure.h"
#include "server/request_fields.h"
#include "server/sandbox.h"

#define POLICY_MAX (2u << 20) /* requests are smaller; escapes may make them longer */
#define PREFIX	   "OPENSANDBOX_EGRESS_"

/* What a request may tell the filter of its own sandbox, behind PREFIX.  One filter serves all:
 * what is about the whole of it, as its log, is the operator's. */
static const char *const settings[] = {
	"DNS_UPSTREAM_TIMEOUT",
	"MITMPROXY_SSL_INSECURE",
	"DENY_WEBHOOK",
	"CREDENTIAL_VAULT_REQUIRE_TLS",
	"CREDENTIAL_VAULT_REQUIRE_SCOPED_MATCH",
	"CREDENTIAL_VAULT_TRUSTED_PROXY_CIDRS",
};

static int wrong(struct failure *f, const char *what)
{
	return failure_set(f, 422, REQUEST_CODE, "networkPolicy.egress%s", what);
}

/* The shape alone; null is no list here, unlike elsewhere: clients rely on the 422. */
static int check_shape(const struct json *policy, struct failure *f)
{
	const struct json *member, *rules = NULL;
	struct view key, text;
	void *it = NULL;

	while (json_next(policy, &it, &key, &member))
		if (view_is(key, "egress"))
			rules = member;
	if (!rules)
		return 0;
	if (json_kind(rules) != JSON_ARRAY)
		return wrong(f, " must be an array");
	for (size_t i = 0; i < json_len(rules); i++) {
		const struct json *rule = json_at(rules, i);

		if (json_kind(rule) != JSON_OBJECT)
			return wrong(f, ": every rule must be an object");
		if (!json_str(json_get(rule, "action"), &text) ||
		    !json_str(json_get(rule, "target"), &text) || text.len == 0)
			return wrong(f, ": every rule needs the strings action and target");
	}
	return 0;
}

static int read_policy(const struct json *v, const struct config *config, char **ret,
		       struct failure *f)
{
	osb_cleanup(net_policy_done) struct net_policy policy = NET_POLICY_NONE;
	struct buf text = BUF_INIT(POLICY_MAX);
	struct err e = ERR_NONE;
	struct json_writer w;

	if (check_shape(v, f) < 0)
		return -1;
	if (net_policy_from_json(v, (size_t)config->egress_max_rules, &policy, &e) < 0)
		return failure_set(f, 400, REQUEST_CODE, "networkPolicy: %s", e.msg);
	json_writer_init(&w, &text);
	net_policy_write(&policy, &w);
	if (json_writer_end(&w) < 0) {
		buf_done(&text);
		return failure_set(f, 400, REQUEST_CODE, "networkPolicy is too large");
	}
	*ret = buf_take_str(&text);
	return 0;
}

static bool is_setting(struct view name)
{
	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		if (view_is(name, settings[i]))
			return true;
	return false;
}

static int read_settings(struct sandbox_spec *spec, struct failure *f)
{
	for (size_t i = 0; i < spec->env.n; i++) {
		struct view name = view_of(spec->env.v[i].name);

		if (!view_starts(name, VIEW(PREFIX)))
			continue;
		if (view_is(name, PREFIX "POLICY_FILE"))
			return failure_set(f, 400, REQUEST_CODE,
					   "env: " PREFIX "POLICY_FILE would be a file of the "
					   "host; policies are kept by the server");
		if (is_setting(view_skip(name, sizeof(PREFIX) - 1)))
			pairs_set(&spec->network.settings, name, view_of(spec->env.v[i].value));
	}
	return 0;
}

static int check_proxy(const struct json *policy, const struct config *config, struct failure *f)
{
	if (!policy)
		return failure_set(f, 422, REQUEST_CODE,
				   "credentialProxy.enabled needs a networkPolicy");
	if (egress_settings_names_only(config))
		return failure_set(f, 400, REQUEST_CODE,
				   "credentialProxy.enabled needs [egress] mode = \"dns+nft\" on "
				   "this server");
	return 0;
}

int request_network(const struct json *body, const struct config *config, struct sandbox_spec *spec,
		    struct failure *f)
{
	const struct json *policy = NULL, *proxy = NULL;
	bool enabled = false;

	if (request_object(body, "networkPolicy", &policy, f) < 0 ||
	    request_object(body, "credentialProxy", &proxy, f) < 0 ||
	    (proxy && request_bool(proxy, "enabled", &enabled, f) < 0))
		return -1;
	if (enabled && check_proxy(policy, config, f) < 0)
		return -1;
	if (!policy)
		return 0;
	if (!config->network)
		return failure_set(f, 400, REQUEST_CODE,
				   "networkPolicy: sandboxes have no network here to hold to it: "
				   "native.network is false");
	spec->network.credential_proxy = enabled;
	if (read_policy(policy, config, &spec->network.policy, f) < 0)
		return -1;
	return read_settings(spec, f);
}
