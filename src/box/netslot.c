/*
 * box/netslot.c - point-to-point links to sandboxes, routed and masqueraded by the host.
 *
 * Every sandbox has one veth pair and one /32 route outside; there is no bridge, no ARP and no rule
 * of its own, so that making one costs the same however many there are.  For the same reason
 * nothing below /proc/sys/net is touched from within a new namespace: the kernel keeps an entry per
 * namespace in one hash chain.
 */
#include "box/netslot.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/rand.h"
#include "box/netslot_bare.h"
#include "box/netslot_rules.h"
#include "codec/resolv.h"
#include "sys/clone.h"
#include "sys/namespace.h"
#include "sys/netlink.h"

#define WORD_BITS 64u

/* Any number that no kernel gives to the links it makes by itself in a new namespace. */
#define INSIDE_INDEX 64
#define INSIDE_NAME  "eth0"

/* A number whose last veth is still being torn down is passed over; so many in a row are a fault.
 */
#define BUSY_MAX 256

/* A namespace that nobody has used, kept for another sandbox. */
struct spare {
	uint32_t slot;
	int netns;
};

struct netslots {
	struct netslot_plan plan;
	uint64_t *used; /* one bit per slot */
	uint32_t next;	/* where the search goes on: a number rests as long as possible */
	uint32_t used_n;
	uint32_t mtu;
	int own_net_fd, netlink_fd;
	bool nat;
	bool ipv6; /* the kernel has it */
	char missing[320];
	struct spare *spares;
	unsigned spares_n, spares_max;
};

static bool is_used(const struct netslots *n, uint32_t slot)
{
	return n->used[slot / WORD_BITS] >> slot % WORD_BITS & 1;
}

static void mark(struct netslots *n, uint32_t slot, bool used)
{
	uint64_t bit = UINT64_C(1) << slot % WORD_BITS;

	n->used[slot / WORD_BITS] &= ~bit;
	n->used[slot / WORD_BITS] |= used ? bit : 0;
	n->used_n += used ? 1 : -1u;
}

static int take_number(struct netslots *n, uint32_t *ret, struct err *e)
{
	for (uint32_t i = 0; i < n->plan.slots && n->used_n < n->plan.slots; i++) {
		uint32_t slot = (n->next + i) % n->plan.slots;

		if (is_used(n, slot))
			continue;
		mark(n, slot, true);
		n->next = slot + 1;
		*ret = slot;
		return 0;
	}
	return err_set(e, -EAGAIN, "all %u addresses of the subnet are in use", n->plan.slots);
}

static uint32_t slot_address(const struct netslots *n, uint32_t slot)
{
	return n->plan.network + 2 + slot;
}

static void slot_name(const struct netslots *n, uint32_t slot, char ret[IFNAMSIZ])
{
	snprintf(ret, IFNAMSIZ, "%s%04x", n->plan.prefix, slot & 0xffff);
}

static int write_sysctl(const char *path, const char *value, struct err *e)
{
	osb_cleanup(fd_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		return err_set(e, -errno, "write %s: %m", path);
	return 0;
}

/* Inside: this end of the pair, its address and the way out. */
static int build_inside(struct netslots *n, int netlink_fd, uint32_t slot, struct err *e)
{
	char peer[IFNAMSIZ];
	struct netlink_veth veth = {
		.name = INSIDE_NAME,
		.index = INSIDE_INDEX,
		.peer = peer,
		.peer_netns_fd = n->own_net_fd,
		.mtu = n->mtu,
	};
	struct netlink_batch b;

	slot_name(n, slot, peer);
	netlink_batch_init(&b);
	netlink_add_veth(&b, &veth);
	if (n->ipv6)
		netlink_no_ipv6(&b, INSIDE_INDEX);
	netlink_add_address(&b, INSIDE_INDEX, slot_address(n, slot));
	netlink_add_route(&b, INSIDE_INDEX, 0, 0, n->plan.network + 1);
	return netlink_run(netlink_fd, &b, e);
}

/* Inside, with the next number as long as an old pair of that name is still there. */
static int connect_inside(struct netslots *n, uint32_t *ret_slot, struct err *e)
{
	osb_cleanup(fd_closep) int netlink_fd = -1;
	uint32_t slot;
	int r = netlink_open(&netlink_fd, e);

	for (unsigned i = 0; r == 0 && i < BUSY_MAX; i++) {
		r = take_number(n, &slot, e);
		if (r < 0)
			break;
		r = build_inside(n, netlink_fd, slot, e);
		if (r == 0) {
			*ret_slot = slot;
			return 0;
		}
		mark(n, slot, false);
		if (r == -EEXIST && i + 1 < BUSY_MAX)
			r = 0;
	}
	return r;
}

/* Makes and furnishes a namespace in place, then comes back: we must never go on in another's. */
static int make_inside(struct netslots *n, bool nat, uint32_t *ret_slot, int *ret_netns,
		       struct err *e)
{
	osb_cleanup(fd_closep) int netns = -1;
	int r;

	if (unshare(CLONE_NEWNET) < 0)
		return err_set(e, -errno, "make a network namespace: %m");
	netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	r = netns < 0 ? err_set(e, -errno, "open a network namespace: %m") : 0;
	if (r == 0)
		r = namespace_raise_loopback(e);
	if (r == 0 && nat)
		r = connect_inside(n, ret_slot, e);
	if (setns(n->own_net_fd, CLONE_NEWNET) < 0)
		abort();
	if (r == 0)
		*ret_netns = take_fd(netns);
	return r;
}

/* Outside: the other end. */
static int connect_outside(struct netslots *n, uint32_t slot, struct err *e)
{
	struct netlink_batch b;
	char name[IFNAMSIZ];
	int index;

	slot_name(n, slot, name);
	index = (int)if_nametoindex(name);
	if (index == 0)
		return err_set(e, -errno, "find %s: %m", name);
	netlink_batch_init(&b);
	netlink_check_sources(&b, index);
	if (n->ipv6)
		netlink_no_ipv6(&b, index);
	netlink_set_up(&b, index);
	netlink_add_route(&b, index, slot_address(n, slot), 32, 0);
	return netlink_run(n->netlink_fd, &b, e);
}

static int make(struct netslots *n, bool nat, uint32_t *ret_slot, int *ret_netns, struct err *e)
{
	osb_cleanup(fd_closep) int netns = -1;
	uint32_t slot = NETSLOT_NONE;
	int r = make_inside(n, nat, &slot, &netns, e);

	if (r == 0 && slot != NETSLOT_NONE)
		r = connect_outside(n, slot, e);
	if (r == -EPERM && slot == NETSLOT_NONE)
		r = netslot_bare(&netns, e);
	if (r < 0) {
		netslot_release(n, slot);
		return r;
	}
	*ret_slot = slot;
	*ret_netns = take_fd(netns);
	return 0;
}

/* Where a child sees it: clones copy low descriptors only. */
static bool take_spare(struct netslots *n, uint32_t *ret_slot, int *ret_netns)
{
	struct spare *s = &n->spares[n->spares_n - 1];
	int low = n->spares_n > 0 ? fcntl(s->netns, F_DUPFD_CLOEXEC, 0) : -1;

	if (low < 0)
		return false;
	fd_close(s->netns);
	n->spares_n--;
	*ret_slot = s->slot;
	*ret_netns = low;
	return true;
}

int netslot_make(struct netslots *n, bool nat, uint32_t *ret_slot, int *ret_netns, struct err *e)
{
	int r;

	if (nat && n->nat && take_spare(n, ret_slot, ret_netns))
		return 0;
	r = make(n, nat && n->nat, ret_slot, ret_netns, e);
	/* A route to that address is there already: another server on this host shares the subnet.
	 */
	for (unsigned i = 0; r == -EEXIST && i < BUSY_MAX; i++)
		r = make(n, nat && n->nat, ret_slot, ret_netns, e);
	return r < 0 ? err_ctx(e, "network") : 0;
}

void netslot_release(struct netslots *n, uint32_t slot)
{
	if (n->used && slot < n->plan.slots && is_used(n, slot))
		mark(n, slot, false);
}

static bool is_untouched(struct netslots *n, int netns)
{
	osb_cleanup(fd_closep) int netlink_fd = -1;
	struct err e = ERR_NONE;
	bool untouched = false;

	if (setns(netns, CLONE_NEWNET) < 0)
		return false;
	if (netlink_open(&netlink_fd, &e) < 0 || netlink_untouched(netlink_fd, &untouched, &e) < 0)
		untouched = false;
	if (setns(n->own_net_fd, CLONE_NEWNET) < 0)
		abort();
	return untouched;
}

void netslot_return(struct netslots *n, uint32_t slot, int netns)
{
	if (!n->nat || n->spares_n >= n->spares_max || !is_untouched(n, netns)) {
		fd_close(netns);
		netslot_release(n, slot);
		return;
	}
	n->spares[n->spares_n++] = (struct spare){.slot = slot, .netns = clone_hide_fd(netns)};
}

void netslots_keep(struct netslots *n, unsigned spares_max)
{
	assert(!n->spares);
	n->spares = mem_new_array(struct spare, spares_max);
	n->spares_max = spares_max;
}

static void drop_spares(struct netslots *n)
{
	while (n->spares_n > 0) {
		struct spare *s = &n->spares[--n->spares_n];

		fd_close(s->netns);
		netslot_release(n, s->slot);
	}
}

int netslot_claim(struct netslots *n, uint32_t slot, struct err *e)
{
	/* A server that came back without a network keeps the sandboxes that have one. */
	if (!n->used)
		return 0;
	if (slot >= n->plan.slots)
		return err_set(e, -EINVAL, "no network slot has the number %u", slot);
	if (is_used(n, slot))
		return err_set(e, -EEXIST, "network slot %u is in use", slot);
	mark(n, slot, true);
	return 0;
}

static void sweep_link(void *arg, int index, const char *name)
{
	osb_cleanup(fd_closep) int netlink_fd = -1; /* the other one is in the middle of a list */
	struct netslots *n = arg;
	size_t len = strlen(n->plan.prefix);
	struct err e = ERR_NONE;
	struct netlink_batch b;
	char own[IFNAMSIZ];
	uint32_t slot;

	if (strncmp(name, n->plan.prefix, len) != 0)
		return;
	slot = (uint32_t)strtoul(name + len, NULL, 16);
	slot_name(n, slot, own);
	if (strcmp(name, own) != 0 || (slot < n->plan.slots && is_used(n, slot)))
		return;
	netlink_batch_init(&b);
	netlink_delete_link(&b, index);
	/* One that cannot be deleted is passed over when its number comes round. */
	if (netlink_open(&netlink_fd, &e) == 0)
		(void)!netlink_run(netlink_fd, &b, &e);
}

void netslots_sweep(struct netslots *n)
{
	struct err e = ERR_NONE;

	if (n->nat)
		(void)!netlink_each_link(n->netlink_fd, sweep_link, n, &e);
}

void netslots_remove(struct netslots *n)
{
	drop_spares(n);
	if (n->nat && n->used_n == 0)
		netslot_rules_remove(&n->plan);
}

/* Packets from the outside enter and leave by other interfaces: forwarding is a switch of the whole
 * host. */
static int allow_forwarding(struct err *e)
{
	static const char path[] = "/proc/sys/net/ipv4/ip_forward";
	osb_cleanup(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char c;

	if (fd < 0 || read(fd, &c, 1) != 1)
		return err_set(e, -errno, "read %s: %m", path);
	return c == '0' ? write_sysctl(path, "1", e) : 0;
}

/* Connecting sends nothing, but finds the route and what fits through it. */
static uint32_t outward_mtu(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(53)};
	osb_cleanup(fd_closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(int);
	int mtu = 0;

	a.sin_addr.s_addr = htonl(0x01010101);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &len) < 0 || mtu < 576)
		return 1500;
	return MIN((uint32_t)mtu, UINT32_C(65535));
}

/* Routes to sandboxes would hide another network of this host. */
static int check_free(const struct netslot_plan *p, struct err *e)
{
	uint32_t mask = UINT32_MAX << (32 - p->prefix_len);
	struct ifaddrs *all;
	int r = 0;

	if (getifaddrs(&all) < 0)
		return err_set(e, -errno, "list addresses: %m");
	for (struct ifaddrs *i = all; i && r == 0; i = i->ifa_next) {
		const struct sockaddr_in *a = (const struct sockaddr_in *)(const void *)i->ifa_addr;

		if (a && a->sin_family == AF_INET &&
		    (ntohl(a->sin_addr.s_addr) & mask) == p->network)
			r = err_set(e, -EADDRINUSE, "its subnet is in use on %s", i->ifa_name);
	}
	freeifaddrs(all);
	return r;
}

static int open_nat(struct netslots *n, const struct resolv_conf *dns, struct err *e)
{
	int r = check_free(&n->plan, e);

	if (r == 0)
		r = allow_forwarding(e);
	if (r == 0)
		r = netlink_open(&n->netlink_fd, e);
	if (r == 0)
		r = netslot_rules_load(&n->plan, dns, e);
	return r;
}

static void explain_dns(struct netslots *n, const struct resolv_conf *dns)
{
	if (dns->n == 0)
		snprintf(n->missing, sizeof(n->missing),
			 "sandboxes have no DNS: the host's resolver is %s",
			 dns->loopback_n ? "on loopback only"
					 : (dns->other_n ? "on IPv6 only" : "not configured"));
}

int netslots_new(const char *tag, const char *subnet, const struct resolv_conf *dns,
		 struct netslots **ret, struct err *e)
{
	struct err without = ERR_NONE;
	struct netslots *n = mem_new(struct netslots);
	int r = 0;

	n->netlink_fd = -1;
	n->own_net_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (n->own_net_fd < 0)
		r = err_set(e, -errno, "open our network namespace: %m");
	if (r == 0 && subnet)
		r = netslot_plan_parse(tag, subnet, &n->plan, e);
	if (r < 0) {
		netslots_free(n);
		return r;
	}
	if (!subnet) {
		snprintf(n->missing, sizeof(n->missing), "sandboxes have loopback only, as asked");
	} else if (open_nat(n, dns, &without) < 0) {
		snprintf(n->missing, sizeof(n->missing), "sandboxes have loopback only: %s",
			 without.msg);
	} else {
		n->nat = true;
		n->mtu = outward_mtu();
		n->ipv6 = access("/proc/sys/net/ipv6", F_OK) == 0;
		n->used = mem_new_array(uint64_t, n->plan.slots / WORD_BITS + 1);
		rand_bytes(&n->next, sizeof(n->next));
		n->next %= n->plan.slots;
		explain_dns(n, dns);
	}
	*ret = n;
	return 0;
}

void netslots_free(struct netslots *n)
{
	if (!n)
		return;
	drop_spares(n);
	fd_close(n->own_net_fd);
	fd_close(n->netlink_fd);
	free(n->used);
	free(n->spares);
	free(n);
}

bool netslots_nat(const struct netslots *n)
{
	return n->nat;
}

const char *netslots_missing(const struct netslots *n)
{
	return n->missing;
}
