/*
 * sys/netlink.h - rtnetlink: links, addresses and routes, several changes per system call.
 *
 * A batch is put together first and sent at once; the kernel works through it in order and answers
 * every message.  IPv4 addresses are numbers in host byte order.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

struct err;

#define NETLINK_BATCH_BYTES 1024
#define NETLINK_BATCH_MAX   8

struct netlink_batch {
	size_t len;
	unsigned n;
	const char *what[NETLINK_BATCH_MAX]; /* each message in words, for errors */
	_Alignas(8) char bytes[NETLINK_BATCH_BYTES];
};

/* A pair of ends: this one up and in our namespace, the other one down and elsewhere. */
struct netlink_veth {
	const char *name;
	int index; /* of this end; must be free */
	const char *peer;
	int peer_netns_fd;
	uint32_t mtu;
};

/* A socket of the network namespace that we are in now. */
osb_must_check int netlink_open(int *ret_fd, struct err *e);

void netlink_batch_init(struct netlink_batch *b);

/* Both ends have one hardware address and ask nobody for another: no ARP, no neighbour entries. */
void netlink_add_veth(struct netlink_batch *b, const struct netlink_veth *v);
void netlink_set_up(struct netlink_batch *b, int index);

/* What comes in must be routed back the same way. */
void netlink_check_sources(struct netlink_batch *b, int index);

/* No address comes up by itself; before the link does.  Only for kernels with IPv6. */
void netlink_no_ipv6(struct netlink_batch *b, int index);
void netlink_add_address(struct netlink_batch *b, int index, uint32_t address);

/* `gateway` 0: the destination is on the link itself; else it need not be in any prefix of ours. */
void netlink_add_route(struct netlink_batch *b, int index, uint32_t to, unsigned prefix_len,
		       uint32_t gateway);
void netlink_delete_link(struct netlink_batch *b, int index);

/* Sends the batch and waits for all answers: 0, or the first failure. */
osb_must_check int netlink_run(int fd, const struct netlink_batch *b, struct err *e);

/* Has no packet ever come to or gone from any link of the namespace, not even to be dropped? */
osb_must_check int netlink_untouched(int fd, bool *ret, struct err *e);

/* Calls fn() for every link of the namespace. */
osb_must_check int netlink_each_link(int fd, void (*fn)(void *arg, int index, const char *name),
				     void *arg, struct err *e);
