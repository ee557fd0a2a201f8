/*
 * egress/leases.h - the addresses that a sandbox may reach because it asked for their names.
 *
 * A lease lasts clamp(TTL + 60, 60, 360) seconds, and on while a connection to its address is open:
 * those are looked for every 30 seconds, and the last one leaves it 360 more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "codec/dns.h"

struct box;
struct err;
struct leases;

struct leases *leases_new(struct box *b);
void leases_free(struct leases *l); /* accepts NULL */

/* Before the answer leaves: when this returns 0 the kernel lets them pass.  `name` is the one that
 * was asked for. */
osb_must_check int leases_grant(struct box *b, const char *name, const struct dns_address *v,
				size_t n, struct err *e);

/* Takes back those of names that box->effective no longer allows. */
osb_must_check int leases_revise(struct box *b, struct err *e);

/* Addresses of names with which the vault has business lead to the proxy (NET_SET_VAULT); called
 * when its bindings have changed, too. */
osb_must_check int leases_divert(struct box *b, struct err *e);

/* Is it leased, and by which name (the newest)?  NULL = not. */
const char *leases_name(const struct box *b, bool v6, const uint8_t bytes[16]);
