/*
 * egress/enforce.c - fills the interval sets, all in one transaction.
 *
 * Among addresses a refusal goes before any permission, wherever it stands in the list: that is
 * the order of the kernel's rules.
 */
#include "egress/enforce.h"

#include <string.h>

#include "base/err.h"
#include "egress/box.h"
#include "egress/leases.h"
#include "egress/ranges.h"
#include "egress/settings.h"
#include "egress/vault_proxy.h"
#include "policy/net_table.h"
#include "sys/nfset.h"

/* Resolvers that answer over HTTPS at these addresses, whatever their names. */
static const char *const known_doh[] = {
	"1.1.1.0/29",	       "1.0.0.0/29",	      "8.8.8.8",	"8.8.4.4",
	"9.9.9.9/29",	       "149.112.112.0/24",    "208.67.222.222", "208.67.220.220",
	"94.140.14.14",	       "94.140.15.15",	      "45.90.28.0/22",	"76.76.2.0/24",
	"76.76.10.0/24",       "185.228.168.0/23",    "223.5.5.5",	"223.6.6.6",
	"2606:4700:4700::/48", "2001:4860:4860::/48", "2620:fe::/48",
};

static void add_text(struct ranges *to, struct view text)
{
	struct net_prefix p;

	if (net_prefix_parse(view_trim(text), &p))
		ranges_add(to, &p);
}

static void add_list(struct ranges *to, const char *list)
{
	struct view rest = view_of(list), part;

	while (view_split(&rest, ',', &part))
		add_text(to, part);
}

/* Whoever may not ask for every name could ask these instead.  Who allows the address of one by
 * itself gets it. */
static void add_doh(const struct box *b, struct ranges *to)
{
	const struct settings *s = b->settings;

	if (net_policy_denies_names(&b->effective)) {
		for (size_t i = 0; i < ARRAY_LEN(known_doh); i++) {
			struct net_prefix p;

			if (net_prefix_parse(view_of(known_doh[i]), &p) &&
			    !box_allows_explicitly(b, p.v6, p.bytes))
				ranges_add(to, &p);
		}
	}
	if (s->block_doh_443 && !s->doh_blocklist[0])
		ranges_add_all(to);
	else if (s->block_doh_443)
		add_list(to, s->doh_blocklist);
}

static void add_exempt(const struct box *b, struct ranges *to)
{
	add_list(to, b->settings->nameserver_exempt);
}

/* What the operator himself refuses is refused in every mode. */
static void add_lenient(const struct box *b, struct ranges *to)
{
	struct ranges never = RANGES_NONE;

	if (!box_is_lenient(b))
		return;
	for (size_t i = 0; i < b->effective.n; i++) {
		const struct net_rule *rule = &b->effective.rules[i];

		if (rule->always && !rule->allow && rule->kind == NET_ADDRESSES)
			ranges_add(&never, &rule->prefix);
	}
	ranges_join(&never);
	ranges_invert(&never, to);
	ranges_done(&never);
}

static void add_rules(const struct box *b, bool allow, struct ranges *to)
{
	for (size_t i = 0; i < b->effective.n; i++) {
		const struct net_rule *rule = &b->effective.rules[i];

		if (rule->kind == NET_ADDRESSES && rule->allow == allow)
			ranges_add(to, &rule->prefix);
	}
}

static void add_denied(const struct box *b, struct ranges *to)
{
	add_rules(b, false, to);
}

static void add_allowed(const struct box *b, struct ranges *to)
{
	add_rules(b, true, to);
}

static void add_default(const struct box *b, struct ranges *to)
{
	if (b->effective.default_allow)
		ranges_add_all(to);
}

/* Where every address is admitted, a bound host may be reached without its name being asked for.
 * Private ones are nobody's host: they are left alone. */
static void add_diverted(const struct box *b, struct ranges *to)
{
	static const char *const ours[] = {
		"0.0.0.0/8",	 "10.0.0.0/8",	   "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
		"172.16.0.0/12", "192.168.0.0/16", "224.0.0.0/3",   "::/0",
	};
	struct ranges left = RANGES_NONE;

	if (!vault_proxy_busy(b) || !(b->effective.default_allow || box_is_lenient(b)))
		return;
	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		add_text(&left, view_of(ours[i]));
	ranges_join(&left);
	ranges_invert(&left, to);
	ranges_done(&left);
}

static const struct {
	const char *set;
	void (*fill)(const struct box *b, struct ranges *to);
} sets[] = {
	{NET_SET_DENY, add_denied},   {NET_SET_ALLOW, add_allowed},
	{NET_SET_ALL, add_default},   {NET_SET_LENIENT, add_lenient},
	{NET_SET_DOH, add_doh},	      {NET_SET_DIVERT, add_diverted},
	{NET_SET_EXEMPT, add_exempt},
};

int enforce_policy(struct box *b, struct err *e)
{
	struct nfset_batch *batch = nfset_batch_new(NET_TABLE);
	int r;

	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		struct ranges v = RANGES_NONE;

		sets[i].fill(b, &v);
		ranges_join(&v);
		nfset_flush(batch, sets[i].set);
		nfset_add(batch, sets[i].set, v.v, v.n);
		ranges_done(&v);
	}
	leases_revise(b, batch);
	r = nfset_commit(b->fds[RUNTIME_NET_SETS], batch, e);
	if (r == 0)
		leases_revised(b);
	nfset_batch_free(batch);
	return r;
}
