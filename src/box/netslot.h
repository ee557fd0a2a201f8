/*
 * box/netslot.h - network namespaces with a way out: loopback up, veth in place, address set.
 *
 * A slot is a number: it fixes the address inside and the name of the veth's end outside.  Slots
 * are made in the background because RTNL serialises that work; taking one is free.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"

struct err;
struct netslots;
struct resolv_conf;

#define NETSLOT_NONE UINT32_MAX

/*
 * `subnet`: "10.213.0.0/16", or NULL for no network at all.  `dns`: the resolvers that sandboxes
 * ask. Loads the static nft skeleton (NAT; sandboxes cannot reach each other, the host, or
 * link-local addresses) and makes it work beside Docker's FORWARD policy.  If the host lacks nft or
 * the rights, *ret still comes back and netslots_nat() is false with the reason in
 * netslots_missing().
 */
osb_must_check int netslots_new(const char *tag, const char *subnet, const struct resolv_conf *dns,
				struct netslots **ret, struct err *e);
void netslots_free(struct netslots *n); /* accepts NULL; leaves what is in use alone */
bool netslots_nat(const struct netslots *n);
const char *netslots_missing(const struct netslots *n);

/*
 * A namespace for one sandbox.  *ret_slot is NETSLOT_NONE for a loopback-only one (`nat` false or
 * not possible). The caller owns *ret_netns (an fd).  Takes about a millisecond: not on the create
 * path.
 */
osb_must_check int netslot_make(struct netslots *n, bool nat, uint32_t *ret_slot, int *ret_netns,
				struct err *e);

/* The sandbox is gone: its veth dies with the namespace; the number is free again after a while. */
void netslot_release(struct netslots *n, uint32_t slot);

/* The same, but its namespace (taken) may serve another sandbox: if no packet ever passed through
 * it, it is as new.  Nobody may have a socket in it any more. */
void netslot_return(struct netslots *n, uint32_t slot, int netns);

/* So many namespaces that were returned are kept; none unless this was called. */
void netslots_keep(struct netslots *n, unsigned spares_max);

/* At adoption: this slot is in use by a sandbox that ran before. */
osb_must_check int netslot_claim(struct netslots *n, uint32_t slot, struct err *e);

/* After all claims: removes veths of ours that nobody claimed. */
void netslots_sweep(struct netslots *n);

/* At the end of a run that leaves no sandbox: takes the nft table away. */
void netslots_remove(struct netslots *n);
