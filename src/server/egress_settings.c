/*
 * server/egress_settings.c - [egress] and the environment, as one set of variables.
 */
#include "server/egress_settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/strv.h"
#include "base/view.h"
#include "server/config.h"

#define PREFIX	      "OPENSANDBOX_EGRESS_"
#define UPSTREAMS_MAX 10
#define TIMEOUT_MAX_S 120
#define RULES_LIMIT   1000000
#define VALUE_MAX     4096

extern char **environ;

/* They belong to one sandbox, or to a filter that runs alone. */
static const char *const not_passed[] = {
	"TOKEN", "RULES", "SANDBOX_ID", "HTTP_ADDR", "POLICY_FILE",
};

/* The value of PREFIX + `name`, or NULL; blank is not set. */
static const char *variable(const char *name)
{
	char full[64];
	const char *value;

	snprintf(full, sizeof(full), PREFIX "%s", name);
	value = getenv(full);
	return value && view_trim(view_of(value)).len ? value : NULL;
}

static int take_word(const char *name, const char *const *choices, char **at, struct err *e)
{
	const char *value = variable(name);

	if (!value)
		return 0;
	for (; *choices; choices++) {
		if (view_iis(view_trim(view_of(value)), *choices)) {
			free(*at);
			*at = mem_strdup(*choices);
			return 0;
		}
	}
	return err_set(e, -EINVAL, PREFIX "%s cannot be '%.60s'", name, value);
}

static int take_number(const char *name, int64_t min, int64_t max, int64_t *at, struct err *e)
{
	const char *value = variable(name);
	int64_t n;

	if (!value)
		return 0;
	if (!num_parse_i64(view_trim(view_of(value)), &n) || n < min || n > max)
		return err_set(e, -EINVAL, PREFIX "%s must be a number from %lld to %lld", name,
			       (long long)min, (long long)max);
	*at = n;
	return 0;
}

static void take_text(const char *name, char **at)
{
	const char *value = variable(name);

	if (!value)
		return;
	free(*at);
	*at = mem_strdup(value);
}

static void take_upstreams(struct config *c)
{
	const char *value = variable("DNS_UPSTREAM");
	struct view rest, part;

	if (!value)
		return;
	strv_done(&c->egress_dns_upstream);
	c->egress_dns_upstream = STRV_INIT;
	rest = view_of(value);
	while (view_split(&rest, ',', &part))
		if (view_trim(part).len)
			strv_add_view(&c->egress_dns_upstream, view_trim(part));
}

static bool is_address(int family, struct view text)
{
	unsigned char bytes[sizeof(struct in6_addr)];
	char copy[INET6_ADDRSTRLEN];

	if (text.len >= sizeof(copy))
		return false;
	snprintf(copy, sizeof(copy), VIEW_FMT, VIEW_ARG(text));
	return inet_pton(family, copy, bytes) == 1;
}

/* "198.51.100.1", "198.51.100.1:5353", "2001:db8::1", "[2001:db8::1]:5353" */
static bool is_upstream(struct view text)
{
	struct view address = text, port;
	uint32_t n;

	if (view_starts(text, VIEW("["))) {
		port = view_skip(text, 1);
		if (!view_split(&port, ']', &address) || !is_address(AF_INET6, address))
			return false;
		if (port.len == 0)
			return true;
		if (port.p[0] != ':')
			return false;
		port = view_skip(port, 1);
	} else {
		port = text;
		if (is_address(AF_INET, text) || is_address(AF_INET6, text))
			return true;
		if (!view_split(&port, ':', &address) || !is_address(AF_INET, address))
			return false;
	}
	return num_parse_u32(port, &n) && n >= 1 && n <= UINT16_MAX;
}

static int check_upstreams(const struct strv *upstreams, struct err *e)
{
	if (upstreams->len > UPSTREAMS_MAX)
		return err_set(e, -EINVAL, "egress.dns_upstream: at most %d servers are asked",
			       UPSTREAMS_MAX);
	for (size_t i = 0; i < upstreams->len; i++)
		if (!is_upstream(view_of(upstreams->v[i])))
			return err_set(e, -EINVAL,
				       "egress.dns_upstream: '%.60s' is no IP address, with a port "
				       "or without",
				       upstreams->v[i]);
	return 0;
}

int egress_settings_load(struct config *c, struct err *e)
{
	static const char *const modes[] = {"dns+nft", "dns", NULL};
	static const char *const ways[] = {"reject", "drop", NULL};
	int r = take_word("MODE", modes, &c->egress_mode, e);

	if (r == 0)
		r = take_word("REFUSE", ways, &c->egress_refuse, e);
	if (r == 0)
		r = take_number("DNS_UPSTREAM_TIMEOUT", 1, TIMEOUT_MAX_S,
				&c->egress_dns_upstream_timeout, e);
	if (r == 0)
		r = take_number("MAX_RULES", 0, RULES_LIMIT, &c->egress_max_rules, e);
	if (r < 0)
		return r;
	take_upstreams(c);
	take_text("DENY_WEBHOOK", &c->egress_deny_webhook);
	take_text("RULES_DIR", &c->egress_rules_dir);
	if (c->egress_rules_dir[0] != '/')
		return err_set(e, -EINVAL, "egress.rules_dir must be an absolute path, not '%.80s'",
			       c->egress_rules_dir);
	return check_upstreams(&c->egress_dns_upstream, e);
}

static void set(struct strv *env, const char *name, const char *value)
{
	char full[64];

	snprintf(full, sizeof(full), PREFIX "%s", name);
	strv_env_set(env, view_of(full), view_of(value));
}

static void set_number(struct strv *env, const char *name, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)n);
	set(env, name, text);
}

static bool is_passed(struct view name)
{
	for (size_t i = 0; i < ARRAY_LEN(not_passed); i++)
		if (view_is(name, not_passed[i]))
			return false;
	return true;
}

static void pass_environment(struct strv *env)
{
	for (char **v = environ; v && *v; v++) {
		struct view rest = view_of(*v), name;

		if (view_starts(rest, VIEW(PREFIX)) && view_split(&rest, '=', &name) &&
		    is_passed(view_skip(name, sizeof(PREFIX) - 1)))
			strv_env_set(env, name, rest);
	}
}

void egress_settings_env(const struct config *c, struct strv *env)
{
	osb_cleanup(buf_done) struct buf upstreams = BUF_INIT(VALUE_MAX);
	int r = 0;

	pass_environment(env);
	set(env, "MODE", c->egress_mode);
	set(env, "REFUSE", c->egress_refuse);
	set(env, "RULES_DIR", c->egress_rules_dir);
	set_number(env, "DNS_UPSTREAM_TIMEOUT", c->egress_dns_upstream_timeout);
	set_number(env, "MAX_RULES", c->egress_max_rules);
	if (c->egress_deny_webhook)
		set(env, "DENY_WEBHOOK", c->egress_deny_webhook);
	for (size_t i = 0; r == 0 && i < c->egress_dns_upstream.len; i++)
		r = buf_printf(&upstreams, "%s%s", i ? "," : "", c->egress_dns_upstream.v[i]);
	if (r == 0 && upstreams.len)
		set(env, "DNS_UPSTREAM", buf_str(&upstreams));
}

bool egress_settings_names_only(const struct config *c)
{
	return strcmp(c->egress_mode, "dns") == 0;
}

bool egress_settings_drop(const struct config *c)
{
	return strcmp(c->egress_refuse, "drop") == 0;
}
