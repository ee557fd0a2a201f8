/*
 * sys/netlink.c - messages with attributes, built in place; answers matched by number.
 */
#include "sys/netlink.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

#define ANSWER_BYTES 32768

/* Locally administered; the same on both ends of every pair, which are points, not networks. */
static const unsigned char hardware_address[6] = {0x02, 0x6f, 0x73, 0x62, 0x00, 0x01};

int netlink_open(int *ret_fd, struct err *e)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return err_set(e, -errno, "open rtnetlink: %m");
	*ret_fd = fd;
	return 0;
}

void netlink_batch_init(struct netlink_batch *b)
{
	memset(b, 0, sizeof(*b));
}

static void *append(struct netlink_batch *b, size_t size)
{
	void *p = b->bytes + b->len;

	assert(b->len + NLMSG_ALIGN(size) <= sizeof(b->bytes));
	b->len += NLMSG_ALIGN(size);
	return p;
}

static struct nlmsghdr *begin(struct netlink_batch *b, const char *what, unsigned type,
			      unsigned flags)
{
	struct nlmsghdr *h = append(b, sizeof(*h));

	assert(b->n < NETLINK_BATCH_MAX);
	h->nlmsg_type = (uint16_t)type;
	h->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
	h->nlmsg_seq = b->n + 1;
	b->what[b->n++] = what;
	return h;
}

static void end(struct netlink_batch *b, struct nlmsghdr *h)
{
	h->nlmsg_len = (uint32_t)(b->bytes + b->len - (char *)h);
}

static void put(struct netlink_batch *b, unsigned type, const void *value, size_t size)
{
	struct rtattr *a = append(b, RTA_LENGTH(size));

	a->rta_type = (uint16_t)type;
	a->rta_len = (uint16_t)RTA_LENGTH(size);
	if (size)
		memcpy(RTA_DATA(a), value, size);
}

static void put_u32(struct netlink_batch *b, unsigned type, uint32_t value)
{
	put(b, type, &value, sizeof(value));
}

static void put_text(struct netlink_batch *b, unsigned type, const char *text)
{
	put(b, type, text, strlen(text) + 1);
}

static void put_address(struct netlink_batch *b, unsigned type, uint32_t address)
{
	put_u32(b, type, htonl(address));
}

static struct rtattr *nest(struct netlink_batch *b, unsigned type)
{
	struct rtattr *a = append(b, sizeof(*a));

	a->rta_type = (uint16_t)type;
	return a;
}

static void unnest(struct netlink_batch *b, struct rtattr *a)
{
	a->rta_len = (uint16_t)(b->bytes + b->len - (char *)a);
}

static struct ifinfomsg *put_link(struct netlink_batch *b, int index, unsigned flags)
{
	struct ifinfomsg *link = append(b, sizeof(*link));

	link->ifi_index = index;
	link->ifi_flags = flags;
	link->ifi_change = flags;
	return link;
}

static void put_end(struct netlink_batch *b, const char *name, uint32_t mtu)
{
	put_text(b, IFLA_IFNAME, name);
	put(b, IFLA_ADDRESS, hardware_address, sizeof(hardware_address));
	put_u32(b, IFLA_MTU, mtu);
	put_u32(b, IFLA_NUM_TX_QUEUES, 1);
	put_u32(b, IFLA_NUM_RX_QUEUES, 1);
}

void netlink_add_veth(struct netlink_batch *b, const struct netlink_veth *v)
{
	struct nlmsghdr *h = begin(b, "make a veth pair", RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	struct rtattr *info, *data, *peer;

	put_link(b, v->index, IFF_UP | IFF_NOARP);
	put_end(b, v->name, v->mtu);
	info = nest(b, IFLA_LINKINFO);
	put_text(b, IFLA_INFO_KIND, "veth");
	data = nest(b, IFLA_INFO_DATA);
	peer = nest(b, VETH_INFO_PEER);
	put_link(b, 0, IFF_NOARP);
	put_end(b, v->peer, v->mtu);
	put_u32(b, IFLA_NET_NS_FD, (uint32_t)v->peer_netns_fd);
	unnest(b, peer);
	unnest(b, data);
	unnest(b, info);
	end(b, h);
}

void netlink_set_up(struct netlink_batch *b, int index)
{
	struct nlmsghdr *h = begin(b, "bring a link up", RTM_NEWLINK, 0);

	put_link(b, index, IFF_UP);
	end(b, h);
}

void netlink_check_sources(struct netlink_batch *b, int index)
{
	struct nlmsghdr *h = begin(b, "check a link's sources", RTM_NEWLINK, 0);
	struct rtattr *families, *family, *conf;

	put_link(b, index, 0);
	families = nest(b, IFLA_AF_SPEC);
	family = nest(b, AF_INET);
	conf = nest(b, IFLA_INET_CONF);
	put_u32(b, IPV4_DEVCONF_RP_FILTER, 1);
	unnest(b, conf);
	unnest(b, family);
	unnest(b, families);
	end(b, h);
}

void netlink_no_ipv6(struct netlink_batch *b, int index)
{
	struct nlmsghdr *h = begin(b, "keep IPv6 off a link", RTM_NEWLINK, 0);
	unsigned char no_address = IN6_ADDR_GEN_MODE_NONE;
	struct rtattr *families, *family;

	put_link(b, index, 0);
	families = nest(b, IFLA_AF_SPEC);
	family = nest(b, AF_INET6);
	put(b, IFLA_INET6_ADDR_GEN_MODE, &no_address, sizeof(no_address));
	unnest(b, family);
	unnest(b, families);
	end(b, h);
}

void netlink_add_address(struct netlink_batch *b, int index, uint32_t address)
{
	struct nlmsghdr *h = begin(b, "add an address", RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
	struct ifaddrmsg *m = append(b, sizeof(*m));

	m->ifa_family = AF_INET;
	m->ifa_prefixlen = 32;
	m->ifa_index = (unsigned)index;
	put_address(b, IFA_LOCAL, address);
	put_address(b, IFA_ADDRESS, address);
	end(b, h);
}

void netlink_add_route(struct netlink_batch *b, int index, uint32_t to, unsigned prefix_len,
		       uint32_t gateway)
{
	struct nlmsghdr *h = begin(b, "add a route", RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
	struct rtmsg *m = append(b, sizeof(*m));

	m->rtm_family = AF_INET;
	m->rtm_dst_len = (unsigned char)prefix_len;
	m->rtm_table = RT_TABLE_MAIN;
	m->rtm_protocol = RTPROT_STATIC;
	m->rtm_type = RTN_UNICAST;
	m->rtm_scope = gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
	m->rtm_flags = gateway ? RTNH_F_ONLINK : 0;
	if (prefix_len)
		put_address(b, RTA_DST, to);
	if (gateway)
		put_address(b, RTA_GATEWAY, gateway);
	put_u32(b, RTA_OIF, (uint32_t)index);
	end(b, h);
}

void netlink_delete_link(struct netlink_batch *b, int index)
{
	struct nlmsghdr *h = begin(b, "delete a link", RTM_DELLINK, 0);

	put_link(b, index, 0);
	end(b, h);
}

static int receive(int fd, char *p, size_t size, size_t *ret, struct err *e)
{
	ssize_t n;

	do {
		n = recv(fd, p, size, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_set(e, -errno, "rtnetlink's answer: %m");
	*ret = (size_t)n;
	return 0;
}

int netlink_run(int fd, const struct netlink_batch *b, struct err *e)
{
	_Alignas(8) char answer[8192];
	unsigned failed = b->n, answered = 0;
	int code = 0, r;

	if (send(fd, b->bytes, b->len, 0) < 0)
		return err_set(e, -errno, "rtnetlink: %m");
	while (answered < b->n) {
		struct nlmsghdr *h = (struct nlmsghdr *)answer;
		size_t left;

		r = receive(fd, answer, sizeof(answer), &left, e);
		if (r < 0)
			return r;
		for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			const struct nlmsgerr *said = NLMSG_DATA(h);
			unsigned i = h->nlmsg_seq - 1;

			if (h->nlmsg_type != NLMSG_ERROR || i >= b->n)
				continue;
			answered++;
			if (said->error < 0 && i < failed) {
				failed = i;
				code = said->error;
			}
		}
	}
	return code < 0 ? err_set(e, code, "%s: %s", b->what[failed], strerror(-code)) : 0;
}

static struct rtattr *link_attribute(struct nlmsghdr *h, unsigned type)
{
	struct ifinfomsg *link = NLMSG_DATA(h);
	int left = (int)IFLA_PAYLOAD(h);

	for (struct rtattr *a = IFLA_RTA(link); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == type)
			return a;
	return NULL;
}

/* Calls fn() for every message of the list of links. */
static int each_message(int fd, void (*fn)(void *arg, struct nlmsghdr *h), void *arg, struct err *e)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg link;
	} ask = {
		.head = {.nlmsg_len = sizeof(ask),
			 .nlmsg_type = RTM_GETLINK,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
	};
	_Alignas(8) char answer[ANSWER_BYTES];

	if (send(fd, &ask, sizeof(ask), 0) < 0)
		return err_set(e, -errno, "list links: %m");
	for (;;) {
		struct nlmsghdr *h = (struct nlmsghdr *)answer;
		size_t left;
		int r = receive(fd, answer, sizeof(answer), &left, e);

		if (r < 0)
			return r;
		for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return 0;
			if (h->nlmsg_type == NLMSG_ERROR)
				return err_set(e, -EIO, "list links: refused");
			if (h->nlmsg_type == RTM_NEWLINK)
				fn(arg, h);
		}
	}
}

struct link_walk {
	void (*fn)(void *arg, int index, const char *name);
	void *arg;
};

static void walk_link(void *arg, struct nlmsghdr *h)
{
	struct rtattr *a = link_attribute(h, IFLA_IFNAME);
	struct link_walk *w = arg;

	if (a && memchr(RTA_DATA(a), '\0', RTA_PAYLOAD(a)))
		w->fn(w->arg, ((struct ifinfomsg *)NLMSG_DATA(h))->ifi_index, RTA_DATA(a));
}

int netlink_each_link(int fd, void (*fn)(void *arg, int index, const char *name), void *arg,
		      struct err *e)
{
	struct link_walk w = {.fn = fn, .arg = arg};

	return each_message(fd, walk_link, &w, e);
}

/* Every counter of a link is a number; one that is not 0 has a byte that is not. */
static void look_at_counters(void *arg, struct nlmsghdr *h)
{
	struct rtattr *a = link_attribute(h, IFLA_STATS64);
	const unsigned char *bytes = a ? RTA_DATA(a) : NULL;
	bool *untouched = arg;

	if (!a)
		*untouched = false;
	for (size_t i = 0; a && i < RTA_PAYLOAD(a); i++)
		if (bytes[i] != 0)
			*untouched = false;
}

int netlink_untouched(int fd, bool *ret, struct err *e)
{
	bool untouched = true;
	int r = each_message(fd, look_at_counters, &untouched, e);

	if (r == 0)
		*ret = untouched;
	return r;
}
