/*
 * egress/dns_verdict.c - the asked name decides; what comes back must not undo it.
 */
#include "egress/dns_verdict.h"

#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"
#include "egress/box.h"
#include "policy/net_special.h"

/* They, and all names below them. */
static const char *const hiding[] = {
	/* programs ask these before they use a server of their own, or how to reach one */
	"use-application-dns.net",
	"resolver.arpa",
	"mask.icloud.com",
	"mask-h2.icloud.com",
	"mask-api.icloud.com",
	/* servers */
	"dns.google",
	"dns.google.com",
	"8888.google",
	"cloudflare-dns.com",
	"one.one.one.one",
	"cloudflare-gateway.com",
	"dns.quad9.net",
	"dns9.quad9.net",
	"dns10.quad9.net",
	"dns11.quad9.net",
	"dns12.quad9.net",
	"doh.opendns.com",
	"dns.opendns.com",
	"familyshield.opendns.com",
	"sandbox.opendns.com",
	"doh.umbrella.com",
	"dns.umbrella.com",
	"dns.nextdns.io",
	"dns.adguard.com",
	"dns-family.adguard.com",
	"dns-unfiltered.adguard.com",
	"dns.adguard-dns.com",
	"family.adguard-dns.com",
	"unfiltered.adguard-dns.com",
	"d.adguard-dns.com",
	"doh.cleanbrowsing.org",
	"security-filter-dns.cleanbrowsing.org",
	"family-filter-dns.cleanbrowsing.org",
	"adult-filter-dns.cleanbrowsing.org",
	"dns.controld.com",
	"freedns.controld.com",
	"dns.mullvad.net",
	"doh.mullvad.net",
	"dns0.eu",
	"joindns4.eu",
	"dns4all.eu",
	"doh.pub",
	"dot.pub",
	"dns.pub",
	"dns.alidns.com",
	"doh.360.cn",
	"dot.360.cn",
	"dns.twnic.tw",
	"dns.sb",
	"doh.sb",
	"dot.sb",
	"dns.digitale-gesellschaft.ch",
	"dnsforge.de",
	"dns.switch.ch",
	"dns.njal.la",
	"doh.applied-privacy.net",
	"dot1.applied-privacy.net",
	"doh.libredns.gr",
	"dot.libredns.gr",
	"doh.ffmuc.net",
	"dot.ffmuc.net",
	"doh.xfinity.com",
	"dot.xfinity.com",
	"doh.cox.net",
	"dohdot.coxlab.net",
	"doh.tiar.app",
	"dot.tiar.app",
	"jp.tiar.app",
	"doh.li",
	"pi-dns.com",
	"canadianshield.cira.ca",
	"public.dns.iij.jp",
	"max.rethinkdns.com",
	"sky.rethinkdns.com",
	"basic.rethinkdns.com",
	"blahdns.com",
	"dns.comss.one",
	"dns.yandex.net",
	"wikimedia-dns.org",
	"dns.bebasid.com",
	"ordns.he.net",
	"dns.oszx.co",
	"dns.circl.lu",
	"kaitain.restena.lu",
};

static bool is_at_or_below(struct view name, struct view domain)
{
	if (name.len <= domain.len)
		return view_eq(name, domain);
	return view_ends(name, domain) && name.p[name.len - domain.len - 1] == '.';
}

bool dns_verdict_hides(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(hiding); i++)
		if (is_at_or_below(view_of(name), view_of(hiding[i])))
			return true;
	return false;
}

/* Whoever may ask for every name needs no other server. */
static bool is_forbidden(const struct box *b, const char *name)
{
	return net_policy_denies_names(&b->effective) && dns_verdict_hides(name);
}

static struct dns_verdict deny(const struct box *b, const struct net_rule *rule, const char *why)
{
	return (struct dns_verdict){
		.passes = net_policy_forgives(&b->effective, rule),
		.rule = rule,
		.why = why,
	};
}

struct dns_verdict dns_verdict_name(const struct box *b, const char *name)
{
	const struct net_rule *rule;

	if (!box_allows_name(b, name, &rule))
		return deny(b, rule, NULL);
	if (!rule && is_forbidden(b, name))
		return deny(b, NULL, "dns over https");
	return (struct dns_verdict){.allowed = true, .passes = true, .rule = rule};
}

struct dns_verdict dns_verdict_alias(const struct box *b, const struct dns_verdict *asked,
				     const char *alias)
{
	const struct net_rule *rule = net_policy_find_name(&b->effective, alias);

	if (rule && !rule->allow)
		return deny(b, rule, "alias of a denied name");
	if (!rule && !asked->rule && is_forbidden(b, alias))
		return deny(b, NULL, "dns over https");
	return (struct dns_verdict){.allowed = true, .passes = true, .rule = rule};
}

struct dns_verdict dns_verdict_address(const struct box *b, const struct dns_address *a)
{
	if (net_special(a->v6, a->bytes) && !box_allows_explicitly(b, a->v6, a->bytes))
		return deny(b, NULL, "private address");
	return (struct dns_verdict){.allowed = true, .passes = true};
}
