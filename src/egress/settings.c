/*
 * egress/settings.c - the table of variables and how their values are read.
 */
#include "egress/settings.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/json.h"
#include "policy/net_policy.h"
#include "policy/net_table.h"

#define PREFIX_LEN (sizeof(SETTINGS_PREFIX) - 1)

enum kind { TEXT, ADDRESSES, SWITCH, NUMBER, CHOICE };

/* Both are texts. */
static bool is_text(enum kind kind)
{
	return kind == TEXT || kind == ADDRESSES;
}

enum row_flags {
	SECRET = 1,  /* not on the command line */
	PER_BOX = 2, /* a sandbox may have its own */
};

struct row {
	const char *name;
	enum kind kind;
	unsigned flags;
	size_t at;
	uint32_t min, max;
	const char *choices[4];
	const char *help;
};

#define CA_FILE	  "/opt/opensandbox/mitmproxy-ca-cert.pem"
#define AT(field) .at = offsetof(struct settings, field)

static const struct row rows[] = {
	{"HTTP_ADDR", TEXT, AT(http_addr), .help = "where the API is, alone (:18080)"},
	{"TOKEN", TEXT, SECRET, AT(token), .help = "what requests to the API must show"},
	{"SANDBOX_ID", TEXT, AT(sandbox_id), .help = "named in events"},
	{"RULES", TEXT, AT(rules), .help = "the policy at the start, JSON"},
	{"POLICY_FILE", TEXT, AT(policy_file), .help = "a policy that outlives restarts"},
	{"RULES_DIR", TEXT, AT(rules_dir),
	 .help = "deny.always, allow.always, log_skip.always (/var/egress/rules)"},
	{"MAX_RULES", NUMBER, AT(max_rules), .max = 1u << 20,
	 .help = "of one policy (4096; 0 = any number)"},
	{"MODE", CHOICE, AT(mode), .choices = {"dns", "dns+nft"},
	 .help = "names alone, or addresses too (dns+nft)"},
	{"REFUSE", CHOICE, AT(refuse), .choices = {"reject", "drop"},
	 .help = "say so, or be silent (reject)"},
	{"LOG_LEVEL", CHOICE, AT(log_level), .choices = {"error", "warn", "info", "debug"},
	 .help = "(info)"},
	{"LOG_DECISIONS", SWITCH, AT(log_decisions), .help = "every decision is a line of the log"},
	{"DECISIONS_FILE", TEXT, AT(decisions_file), .help = "a file that JSON lines are added to"},
	{"DNS_UPSTREAM", TEXT, AT(dns_upstream), .help = "servers to ask: IP[:PORT],..."},
	{"DNS_UPSTREAM_TIMEOUT", NUMBER, PER_BOX, AT(dns_upstream_timeout), .min = 1, .max = 120,
	 .help = "seconds (5)"},
	{"DNS_UPSTREAM_PROBE", TEXT, AT(dns_upstream_probe), .help = "a name to probe them with"},
	{"DNS_UPSTREAM_PROBE_INTERVAL_SEC", NUMBER, AT(dns_upstream_probe_interval_sec), .min = 1,
	 .max = 86400, .help = "(30)"},
	{"NAMESERVER_EXEMPT", ADDRESSES, AT(nameserver_exempt),
	 .help = "name servers that sandboxes may ask themselves: IP,..."},
	{"LEASE_CHECK_SEC", NUMBER, AT(lease_check_sec), .min = 1, .max = 3600,
	 .help = "how often open connections are looked for (30)"},
	{"BLOCK_DOH_443", SWITCH, AT(block_doh_443), .help = "refuse port 443 of the list below"},
	{"DOH_BLOCKLIST", ADDRESSES, AT(doh_blocklist),
	 .help = "addresses and networks; none = all"},
	{"DENY_WEBHOOK", TEXT, PER_BOX, AT(deny_webhook), .help = "URL that hears of denied names"},
	{"MITMPROXY_TRANSPARENT", SWITCH, AT(mitmproxy_transparent), .help = "allow a vault"},
	{"MITMPROXY_PORT", NUMBER, AT(mitmproxy_port), .min = 1, .max = 65535, .help = "(18081)"},
	{"MITMPROXY_UPSTREAM_TRUST_DIR", TEXT, AT(mitmproxy_upstream_trust_dir),
	 .help = "more authorities for servers' certificates"},
	{"MITMPROXY_CA_FILE", TEXT, AT(mitmproxy_ca_file),
	 .help = "where the sandbox finds whom to trust, alone (" CA_FILE ")"},
	{"MITMPROXY_SSL_INSECURE", SWITCH, PER_BOX, AT(mitmproxy_ssl_insecure),
	 .help = "believe any certificate; then no vault can be made"},
	{"CREDENTIAL_VAULT_REQUIRE_TLS", SWITCH, PER_BOX, AT(credential_vault_require_tls),
	 .help = "writes to the vault only over TLS or from this machine"},
	{"CREDENTIAL_VAULT_REQUIRE_SCOPED_MATCH", SWITCH, PER_BOX,
	 AT(credential_vault_require_scoped_match), .help = "bindings name methods and paths"},
	{"CREDENTIAL_VAULT_TRUSTED_PROXY_CIDRS", TEXT, PER_BOX,
	 AT(credential_vault_trusted_proxy_cidrs), .help = "whose X-Forwarded-Proto counts"},
};

void settings_init(struct settings *s)
{
	*s = (struct settings){
		.http_addr = ":18080",
		.rules_dir = "/var/egress/rules",
		.max_rules = NET_RULES_MAX,
		.mode = "dns+nft",
		.refuse = "reject",
		.log_level = "info",
		.dns_upstream_timeout = 5,
		.dns_upstream_probe_interval_sec = 30,
		.lease_check_sec = 30,
		.mitmproxy_port = NET_TABLE_HTTP,
		.mitmproxy_ca_file = CA_FILE,
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char **text = (const char **)(void *)((char *)s + rows[i].at);

		if (is_text(rows[i].kind) && !*text)
			*text = "";
	}
}

void settings_done(struct settings *s)
{
	strv_done(&s->texts);
}

size_t settings_n(void)
{
	return ARRAY_LEN(rows);
}

const char *settings_name(size_t i)
{
	return rows[i].name;
}

const char *settings_help(size_t i)
{
	return rows[i].help;
}

bool settings_secret(size_t i)
{
	return rows[i].flags & SECRET;
}

static bool is_true(struct view v)
{
	return view_is(v, "1") || view_iis(v, "true") || view_iis(v, "yes") || view_iis(v, "y") ||
	       view_iis(v, "on");
}

static bool is_false(struct view v)
{
	return view_is(v, "0") || view_iis(v, "false") || view_iis(v, "no") || view_iis(v, "n") ||
	       view_iis(v, "off");
}

static bool are_addresses(struct view list)
{
	struct net_prefix p;
	struct view part;

	while (view_split(&list, ',', &part))
		if (!net_prefix_parse(view_trim(part), &p))
			return false;
	return true;
}

static int set_choice(const struct row *row, struct view value, const char **to, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(row->choices) && row->choices[i]; i++) {
		if (view_iis(value, row->choices[i])) {
			*to = row->choices[i];
			return 0;
		}
	}
	return err_set(e, -EINVAL, "%s cannot be '" VIEW_FMT "'", row->name, VIEW_ARG(value));
}

int settings_set(struct settings *s, size_t i, const char *text, struct err *e)
{
	const struct row *row = &rows[i];
	struct view value = view_trim(view_of(text));
	void *to = (char *)s + row->at;
	uint32_t n;

	if (value.len == 0)
		return 0;
	if (row->kind == ADDRESSES && !are_addresses(value))
		return err_set(e, -EINVAL, "%s: '%s' are no addresses or networks", row->name,
			       text);
	switch (row->kind) {
	case ADDRESSES:
	case TEXT:
		strv_add_view(&s->texts, value);
		*(const char **)to = s->texts.v[s->texts.len - 1];
		return 0;
	case SWITCH:
		if (!is_true(value) && !is_false(value))
			return err_set(e, -EINVAL, "%s is true or false, not '%s'", row->name,
				       text);
		*(bool *)to = is_true(value);
		return 0;
	case NUMBER:
		if (!num_parse_u32(value, &n) || n < row->min || n > row->max)
			return err_set(e, -EINVAL, "%s is a number from %u to %u, not '%s'",
				       row->name, row->min, row->max, text);
		*(uint32_t *)to = n;
		return 0;
	case CHOICE:
		return set_choice(row, value, to, e);
	default:
		return 0;
	}
}

/* Its index, or -1. */
static int find(struct view name)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (view_is(name, rows[i].name))
			return (int)i;
	return -1;
}

int settings_from_environment(struct settings *s, char *const *environment, struct err *e)
{
	for (; *environment; environment++) {
		struct view rest = view_of(*environment), name;
		int i, r;

		if (!view_starts(rest, VIEW(SETTINGS_PREFIX)) || !view_split(&rest, '=', &name))
			continue;
		i = find(view_skip(name, PREFIX_LEN));
		if (i < 0) {
			log_line(LOG_WARN, "ignoring a variable that means nothing here",
				 LOG_V("variable", name));
			continue;
		}
		r = settings_set(s, (size_t)i, rest.p, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static void copy_texts(struct settings *s)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char **text = (const char **)(void *)((char *)s + rows[i].at);

		if (!is_text(rows[i].kind))
			continue;
		strv_add(&s->texts, *text);
		*text = s->texts.v[s->texts.len - 1];
	}
}

int settings_for_box(const struct settings *general, const struct json *variables,
		     struct settings *ret, struct err *e)
{
	const struct json *value;
	struct settings s = *general;
	struct view name, text;
	void *it = NULL;
	int r = 0;

	s.texts = STRV_INIT;
	copy_texts(&s);
	while (r == 0 && variables && json_next(variables, &it, &name, &value)) {
		int i = view_starts(name, VIEW(SETTINGS_PREFIX)) ? find(view_skip(name, PREFIX_LEN))
								 : -1;
		osb_cleanup(mem_freep) char *copy = NULL;

		if (i < 0 || !(rows[i].flags & PER_BOX) || !json_str(value, &text))
			continue;
		copy = mem_strndup(text.p, text.len);
		r = settings_set(&s, (size_t)i, copy, e);
	}
	if (r < 0) {
		settings_done(&s);
		return r;
	}
	/* What the operator demands, no request takes back. */
	s.credential_vault_require_tls |= general->credential_vault_require_tls;
	s.credential_vault_require_scoped_match |= general->credential_vault_require_scoped_match;
	*ret = s;
	return 0;
}

bool settings_closed(const struct settings *s)
{
	return strcmp(s->mode, "dns") != 0;
}
