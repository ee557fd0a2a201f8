/*
 * policy/net_table.c - one order of rules for everybody; what differs between policies is in sets.
 *
 * Sandboxes are judged where their packets begin, in the output hook of their own namespace:
 * destinations are rewritten first (nat), then admitted or refused.
 */
#include "policy/net_table.h"

#include <string.h>

#include "base/buf.h"

/* Enough to see what a sandbox does, too little to keep anybody busy. */
#define LOG_RATE "limit rate 100/second burst 400 packets"

/* Of a packet only the addresses and ports are of interest. */
#define LOG_BYTES 128

/* Elements whose time is over never match; they need not be cleared away at once.  The kernel looks
 * for them every second by default, in every namespace. */
#define CLEAR_SECONDS 60

static const char *const interval_sets[] = {
	NET_SET_DENY, NET_SET_ALLOW,  NET_SET_ALL,    NET_SET_LENIENT,
	NET_SET_DOH,  NET_SET_EXEMPT, NET_SET_DIVERT,
};

static const char *const timed_sets[] = {NET_SET_DYNAMIC, NET_SET_VAULT};

static int put_interval_set(struct buf *b, const char *name, bool all)
{
	int r = buf_printf(b, "\tset %s4 { type ipv4_addr; flags interval;%s }\n", name,
			   all ? " elements = { 0.0.0.0/0 };" : "");

	if (r < 0)
		return r;
	return buf_printf(b, "\tset %s6 { type ipv6_addr; flags interval;%s }\n", name,
			  all ? " elements = { ::/0 };" : "");
}

static int put_sets(const struct net_table_options *o, struct buf *b)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(interval_sets); i++)
		r = put_interval_set(b, interval_sets[i],
				     o->open && strcmp(interval_sets[i], NET_SET_ALL) == 0);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(timed_sets); i++)
		r = buf_printf(b,
			       "\tset %s4 { type ipv4_addr; flags timeout; gc-interval %us; }\n"
			       "\tset %s6 { type ipv6_addr; flags timeout; gc-interval %us; }\n",
			       timed_sets[i], CLEAR_SECONDS, timed_sets[i], CLEAR_SECONDS);
	return r;
}

/* IPv6 cannot be led to 127.0.0.1: names are not asked for over it, bound hosts not reached. */
static int put_redirects(const struct net_table_options *o, struct buf *b)
{
	int r = buf_printf(b, "\tchain lead {\n"
			      "\t\ttype nat hook output priority -100; policy accept;\n");

	if (r == 0 && o->marked)
		r = buf_printf(b, "\t\tmeta mark %u accept\n", NET_TABLE_MARK);
	if (r < 0)
		return r;
	return buf_printf(
		b,
		"\t\tip daddr @" NET_SET_EXEMPT "4 meta l4proto { tcp, udp } th dport 53 accept\n"
		"\t\tmeta nfproto ipv4 udp dport 53 redirect to :%u\n"
		"\t\tmeta nfproto ipv4 tcp dport 53 redirect to :%u\n"
		/* Refused by the filter, not by whoever they were led to. */
		"\t\tip daddr @" NET_SET_DOH "4 tcp dport 443 accept\n"
		"\t\tip daddr @" NET_SET_VAULT "4 tcp dport { 80, 443 } redirect to :%u\n"
		"\t\tip daddr @" NET_SET_DIVERT "4 tcp dport { 80, 443 } redirect to :%u\n"
		"\t}\n",
		o->dns_port, o->dns_port, o->http_port, o->http_port);
}

static int put_verdicts(const struct net_table_options *o, struct buf *b)
{
	return buf_printf(b,
			  "\tchain admit {\n"
			  "\t\t" LOG_RATE " log prefix \"a\" group %u snaplen %u\n"
			  "\t\taccept\n"
			  "\t}\n"
			  "\tchain refuse {\n"
			  "\t\t" LOG_RATE " log prefix \"r\" group %u snaplen %u\n"
			  "\t\tip daddr @" NET_SET_LENIENT "4 accept\n"
			  "\t\tip6 daddr @" NET_SET_LENIENT "6 accept\n"
			  "%s"
			  "\t}\n",
			  NET_TABLE_LOG, LOG_BYTES, NET_TABLE_LOG, LOG_BYTES,
			  o->drop ? "\t\tdrop\n"
				  : "\t\tmeta l4proto tcp reject with tcp reset\n"
				    "\t\treject with icmpx type admin-prohibited\n");
}

static int put_set_rules(struct buf *b)
{
	static const struct {
		const char *set, *match, *verdict;
	} rules[] = {
		{NET_SET_DOH, "meta l4proto { tcp, udp } th dport 443 ", "refuse"},
		{NET_SET_DENY, "", "refuse"},
		{NET_SET_DYNAMIC, "", "admit"},
		{NET_SET_ALLOW, "", "admit"},
		{NET_SET_ALL, "", "admit"},
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(rules); i++)
		r = buf_printf(b,
			       "\t\tip daddr @%s4 %sgoto %s\n"
			       "\t\tip6 daddr @%s6 %sgoto %s\n",
			       rules[i].set, rules[i].match, rules[i].verdict, rules[i].set,
			       rules[i].match, rules[i].verdict);
	return r;
}

/* What was led elsewhere still seems to leave by the old interface: it is known by its
 * connection. */
static int put_output(const struct net_table_options *o, struct buf *b)
{
	int r = buf_append_str(b, "\tchain output {\n"
				  "\t\ttype filter hook output priority 0; policy drop;\n"
				  "\t\tct state established,related accept\n");

	/* Beside others in one namespace, which may have IPv6: neighbours have to be found. */
	if (r == 0 && o->marked)
		r = buf_printf(b,
			       "\t\tmeta mark %u accept\n"
			       "\t\ticmpv6 type { nd-router-solicit, nd-neighbor-solicit, "
			       "nd-neighbor-advert } accept\n",
			       NET_TABLE_MARK);
	if (r == 0)
		r = buf_append_str(b, "\t\toifname \"lo\" accept\n"
				      "\t\tct status dnat accept\n");
	if (r == 0 && o->names_only)
		return buf_append_str(b, "\t\tgoto admit\n\t}\n");
	if (r == 0)
		r = buf_append_str(b, "\t\tip daddr @" NET_SET_EXEMPT
				      "4 meta l4proto { tcp, udp } th dport 53 goto admit\n"
				      "\t\tip6 daddr @" NET_SET_EXEMPT
				      "6 meta l4proto { tcp, udp } th dport 53 goto admit\n"
				      "\t\tmeta l4proto { tcp, udp } th dport 853 goto refuse\n"
				      "\t\tmeta nfproto ipv6 meta l4proto { tcp, udp } th dport 53 "
				      "goto refuse\n");
	if (r == 0)
		r = put_set_rules(b);
	return r < 0 ? r : buf_append_str(b, "\t\tgoto refuse\n\t}\n");
}

int net_table_write(const struct net_table_options *o, struct buf *out)
{
	/* Declared, so that deleting it cannot fail; all of it is one transaction. */
	int r = buf_append_str(out, "table inet " NET_TABLE "\n"
				    "delete table inet " NET_TABLE "\n"
				    "table inet " NET_TABLE " {\n");

	if (r == 0)
		r = put_sets(o, out);
	if (r == 0)
		r = put_redirects(o, out);
	if (r == 0)
		r = put_verdicts(o, out);
	if (r == 0)
		r = put_output(o, out);
	return r < 0 ? r : buf_append_str(out, "}\n");
}
