/*
 * egress/vault_reach.c - where the proxy goes for a sandbox: never further than the sandbox could.
 *
 * Its connections begin on the host, where the sandbox's own rules do not hold; what those say is
 * said here again, and what only the host could reach is refused.
 */
#include <arpa/inet.h>
#include <string.h>

#include "base/err.h"
#include "egress/box.h"
#include "egress/decisions.h"
#include "egress/dns_verdict.h"
#include "egress/egress.h"
#include "egress/leases.h"
#include "egress/vault_int.h"
#include "net/connect.h"
#include "policy/net_special.h"
#include "policy/net_table.h"
#include "sys/net_mark.h"

#define CONNECT_MS 10000

/* What no rule opens: this machine, its links, everybody at once, and where clouds keep a machine's
 * secrets.  The host keeps its sandboxes from the same (box/netslot_rules.c). */
static const char *const never[] = {
	"0.0.0.0/8",	   "127.0.0.0/8",   "169.254.0.0/16", "224.0.0.0/4",  "240.0.0.0/4",
	"100.100.100.200", "168.63.129.16", "192.0.0.0/24",   "::/128",	      "::1/128",
	"::ffff:0:0/96",   "fe80::/10",	    "ff00::/8",	      "64:ff9b::/96", "2002::/16",
};

static bool is_forbidden(const struct vault_dst *d)
{
	for (size_t i = 0; i < ARRAY_LEN(never); i++) {
		struct net_prefix p;

		if (net_prefix_parse(view_of(never[i]), &p) && net_prefix_has(&p, d->v6, d->bytes))
			return true;
	}
	return false;
}

/* As the name would be answered, had it been asked for. */
static bool may_be_said(const struct box *b, const char *name)
{
	return dns_verdict_name(b, name).passes;
}

const char *vault_refusal(struct vault_proxy *p, const struct vault_dst *d, const char *name)
{
	const struct net_rule *by_address;
	struct box *b = p->box;
	bool open = box_allows_address(b, d->v6, d->bytes, &by_address);
	const char *leased;

	if (is_forbidden(d))
		return "address of the host or its links";
	if (net_special(d->v6, d->bytes) && !box_allows_explicitly(b, d->v6, d->bytes))
		return "private address";
	if (by_address && !open && !net_policy_forgives(&b->effective, by_address))
		return "address is denied";
	if (by_address && open)
		return NULL;
	/* That the kernel led it here says that a bound host has it; we may have forgotten. */
	leased = leases_name(b, d->v6, d->bytes);
	if (!leased && !open && !name[0] && !box_is_lenient(b))
		return "address is not allowed";
	/* A name that was said must be allowed itself, wherever it leads. */
	if (name[0] && !may_be_said(b, name))
		return "name is not allowed";
	if (!name[0] && leased && !may_be_said(b, leased))
		return "name is not allowed";
	return NULL;
}

void vault_note(struct vault_proxy *p, const struct vault_dst *d, const char *name, bool https,
		const char *why)
{
	struct decision what = {
		.kind = DECISION_REQUEST,
		.allowed = why == NULL,
		.passed = why == NULL,
		.name = name[0] ? name : NULL,
		.has_address = true,
		.v6 = d->v6,
		.port = d->port,
		.protocol = https ? "https" : "http",
		.why = why,
		.uid = -1,
		.pid = -1,
	};

	memcpy(what.address, d->bytes, sizeof(what.address));
	/* In a lenient mode it passes, whatever the policy says. */
	if (!why && name[0] && !box_allows_name(p->box, name, &what.rule))
		what.allowed = box_allows_explicitly(p->box, d->v6, d->bytes);
	if (p->box->decisions)
		decisions_note(p->box, &what);
}

bool vault_leads_to(const struct vault_conn *c, const char *name)
{
	return c->https || strcmp(c->proven, name) == 0 ||
	       leases_leads(c->proxy->box, name, c->dst.v6, c->dst.bytes);
}

int vault_connect(struct vault_proxy *p, const struct vault_dst *d,
		  void (*fn)(void *arg, int fd, const struct err *e), void *arg,
		  struct connect **ret, struct err *e)
{
	const struct connect_to to = {
		.ip = d->ip,
		.port = d->port,
		.timeout_ms = CONNECT_MS,
		.mark = p->box->egress->alone ? NET_TABLE_MARK : NET_MARK_IN_STEAD,
	};

	return connect_new(p->box->egress->loop, &to, fn, arg, ret, e);
}

static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET6)
		return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
			      &((const struct sockaddr_in6 *)b)->sin6_addr, 16) == 0;
	return memcmp(&((const struct sockaddr_in *)a)->sin_addr,
		      &((const struct sockaddr_in *)b)->sin_addr, 4) == 0;
}

/* To an address of its own the kernel connects from that same address. */
bool vault_is_elsewhere(int fd)
{
	struct sockaddr_storage here = {0}, there = {0};
	socklen_t n = sizeof(here), m = sizeof(there);

	return getsockname(fd, (struct sockaddr *)&here, &n) == 0 &&
	       getpeername(fd, (struct sockaddr *)&there, &m) == 0 && !same_address(&here, &there);
}
