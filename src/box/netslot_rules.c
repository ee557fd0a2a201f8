/*
 * box/netslot_rules.c - what a sandbox may send and where, as one nft table.
 *
 * A sandbox reaches the outside through the host's addresses, and nothing else: not the host, not
 * another sandbox, not what is only meant for the host (link-local and metadata addresses, bridges
 * of other containers).  Nor is it reached by anyone: its ports are opened from within its
 * namespace.
 */
#include "box/netslot_rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "box/netslot_openings.h"
#include "codec/resolv.h"
#include "sys/net_mark.h"
#include "sys/tool.h"

#define RULES_MAX_BYTES 16384
#define SLOTS_MAX	16384u

/* The network's own address, the gateway's and the broadcast address belong to nobody. */
#define RESERVED_N 3u

/* Never a sandbox's business: this machine, this link, and where clouds keep a machine's secrets.
 */
static const char *const never[] = {
	"0.0.0.0/8",	 "127.0.0.0/8",	 "169.254.0.0/16", "100.100.100.200",
	"168.63.129.16", "192.0.0.0/24", "224.0.0.0/4",	   "240.0.0.0/4",
};

/* Bridges of other containers and virtual machines on this host, by what their makers call them. */
static const char *const foreign[] = {
	"docker*", "br-*", "podman*", "cni*", "virbr*", "lxcbr*", "lxdbr*", "incusbr*",
};

int netslot_plan_parse(const char *tag, const char *subnet, struct netslot_plan *ret, struct err *e)
{
	struct view rest = view_of(subnet), address;
	struct netslot_plan p = {0};
	struct in_addr network;
	char text[16] = "";
	uint64_t fits;

	if (strlen(tag) >= sizeof(p.tag) || strspn(tag, "0123456789abcdef") != strlen(tag))
		return err_set(e, -EINVAL, "'%s' cannot tell networks apart", tag);
	if (!view_split(&rest, '/', &address) || address.len >= sizeof(text))
		return err_set(e, -EINVAL, "'%s' is no subnet", subnet);
	memcpy(text, address.p, address.len);
	if (inet_pton(AF_INET, text, &network) != 1 || !num_parse_u32(rest, &p.prefix_len) ||
	    p.prefix_len < 8 || p.prefix_len > 28)
		return err_set(e, -EINVAL, "'%s' is no subnet from /8 to /28", subnet);
	p.network = ntohl(network.s_addr);
	fits = UINT64_C(1) << (32 - p.prefix_len);
	if (p.network & (fits - 1))
		return err_set(e, -EINVAL, "'%s' is an address in a subnet, not a subnet", subnet);
	p.slots = MIN((uint32_t)fits - RESERVED_N, SLOTS_MAX);
	memcpy(p.tag, tag, strlen(tag));
	snprintf(p.prefix, sizeof(p.prefix), "ob%s", tag);
	*ret = p;
	return 0;
}

static void address_text(uint32_t address, char ret[INET_ADDRSTRLEN])
{
	struct in_addr a = {.s_addr = htonl(address)};

	(void)inet_ntop(AF_INET, &a, ret, INET_ADDRSTRLEN);
}

static int put_sets(struct buf *b, const char *subnet, const struct resolv_conf *dns)
{
	int r = buf_printf(b,
			   "\tset never {\n\t\ttype ipv4_addr; flags interval; auto-merge\n"
			   "\t\telements = { %s",
			   subnet);

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(never); i++)
		r = buf_printf(b, ", %s", never[i]);
	if (r == 0)
		r = buf_append_str(b, " }\n\t}\n\tset resolvers {\n\t\ttype ipv4_addr\n");
	for (unsigned i = 0; r == 0 && i < dns->n; i++) {
		char text[INET_ADDRSTRLEN];

		address_text(dns->servers[i], text);
		r = buf_printf(b, "%s%s", i ? ", " : "\t\telements = { ", text);
	}
	return r < 0 ? r : buf_append_str(b, dns->n ? " }\n\t}\n" : "\t}\n");
}

/* Before any destination is rewritten: ports that others publish on the host are the host's too. */
static int put_from_sandbox(struct buf *b, const char *subnet, bool strict)
{
	return buf_printf(b,
			  "\tchain from_sandbox {\n"
			  "\t\tmeta nfproto != ipv4 drop\n"
			  "\t\tip saddr != %s drop\n"
			  "%s"
			  "\t\tct state established,related accept\n"
			  "\t\tip daddr @resolvers meta l4proto { tcp, udp } th dport 53 accept\n"
			  "\t\tip daddr @never drop\n"
			  "%s"
			  "\t}\n",
			  subnet, strict ? "\t\tfib saddr . iif oif missing drop\n" : "",
			  strict ? "\t\tfib daddr type { local, broadcast, multicast } drop\n"
				 : "");
}

static int put_forward(struct buf *b, const char *prefix)
{
	int r = buf_printf(b,
			   "\tchain forward {\n"
			   "\t\ttype filter hook forward priority filter - 10; policy accept;\n"
			   "\t\tiifname \"%s*\" oifname \"%s*\" drop\n",
			   prefix, prefix);

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(foreign); i++)
		r = buf_printf(b, "\t\tiifname \"%s*\" oifname \"%s\" drop\n", prefix, foreign[i]);
	if (r < 0)
		return r;
	return buf_printf(b,
			  "\t\toifname \"%s*\" ct state established,related accept\n"
			  "\t\toifname \"%s*\" drop\n"
			  "\t}\n",
			  prefix, prefix);
}

/* What egress connects to in a sandbox's stead; routes are known here. */
static int put_in_stead(struct buf *b)
{
	int r = buf_append_str(b, "\tchain in_stead {\n\t\tip daddr @never drop\n");

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(foreign); i++)
		r = buf_printf(b, "\t\toifname \"%s\" drop\n", foreign[i]);
	return r < 0 ? r : buf_append_str(b, "\t}\n");
}

static int put_hooks(struct buf *b, const char *prefix, const char *subnet)
{
	return buf_printf(b,
			  "\tchain prerouting {\n"
			  "\t\ttype filter hook prerouting priority mangle; policy accept;\n"
			  "\t\tiifname \"%s*\" jump from_sandbox\n"
			  "\t}\n"
			  "\tchain to_host {\n"
			  "\t\tct state established,related accept\n"
			  "\t\tip daddr @resolvers meta l4proto { tcp, udp } th dport 53 accept\n"
			  "\t\tdrop\n"
			  "\t}\n"
			  "\tchain input {\n"
			  "\t\ttype filter hook input priority filter - 10; policy accept;\n"
			  "\t\tiifname \"%s*\" jump to_host\n"
			  "\t}\n"
			  "\tchain output {\n"
			  "\t\ttype filter hook output priority filter - 10; policy accept;\n"
			  "\t\tmeta mark %u jump in_stead\n"
			  "\t\toifname \"%s*\" ct state established,related accept\n"
			  "\t\toifname \"%s*\" drop\n"
			  "\t}\n"
			  "\tchain postrouting {\n"
			  "\t\ttype nat hook postrouting priority srcnat; policy accept;\n"
			  "\t\tip saddr %s oifname != \"%s*\" masquerade\n"
			  "\t}\n",
			  prefix, prefix, NET_MARK_IN_STEAD, prefix, prefix, subnet, prefix);
}

int netslot_rules_format(const struct netslot_plan *p, const struct resolv_conf *dns, bool strict,
			 struct buf *b)
{
	char subnet[INET_ADDRSTRLEN + 4], address[INET_ADDRSTRLEN];
	int r;

	address_text(p->network, address);
	snprintf(subnet, sizeof(subnet), "%s/%u", address, p->prefix_len);
	/* Declared, so that deleting it cannot fail; all of it is one transaction. */
	r = buf_printf(b,
		       "table inet opensandbox_%s\ndelete table inet opensandbox_%s\n"
		       "table inet opensandbox_%s {\n",
		       p->tag, p->tag, p->tag);
	if (r == 0)
		r = put_sets(b, subnet, dns);
	if (r == 0)
		r = put_from_sandbox(b, subnet, strict);
	if (r == 0)
		r = put_in_stead(b);
	if (r == 0)
		r = put_hooks(b, p->prefix, subnet);
	if (r == 0)
		r = put_forward(b, p->prefix);
	return r < 0 ? r : buf_append_str(b, "}\n");
}

static int run_nft(struct view script, struct err *e)
{
	const char *const argv[] = {"nft", "-f", "-", NULL};
	char said[160];
	int r = tool_run(argv, script, said, sizeof(said), e);

	if (r <= 0)
		return r;
	said[strcspn(said, "\n")] = '\0';
	return err_set(e, -EPERM, "nft refuses the rules: %s", said);
}

static int load(const struct netslot_plan *p, const struct resolv_conf *dns, bool strict,
		struct err *e)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(RULES_MAX_BYTES);
	int r = netslot_rules_format(p, dns, strict, &b);

	return r < 0 ? err_set(e, r, "the rules are too long") : run_nft(buf_view(&b), e);
}

int netslot_rules_load(const struct netslot_plan *p, const struct resolv_conf *dns, struct err *e)
{
	struct err first = ERR_NONE;
	int r = load(p, dns, true, &first);

	/* A kernel without nft_fib: the input chain and reverse path filters do its work. */
	if (r == -EPERM)
		r = load(p, dns, false, e);
	else if (r < 0)
		return err_set(e, r, "%s", first.msg);
	if (r == 0)
		netslot_openings_make(p->prefix);
	return r;
}

void netslot_rules_remove(const struct netslot_plan *p)
{
	struct err e = ERR_NONE;
	char script[96];

	netslot_openings_close(p->prefix);
	snprintf(script, sizeof(script),
		 "table inet opensandbox_%s\ndelete table inet opensandbox_%s\n", p->tag, p->tag);
	(void)run_nft(view_of(script), &e); /* nobody is left who could do anything about it */
}
