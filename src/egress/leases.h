/*
 * egress/leases.h - the addresses that a sandbox may reach because it asked for their names.
 *
 * A lease lasts clamp(TTL + 60, 60, 360) seconds, and on while a connection to its address is open:
 * those are looked for every 30 seconds, and the last one leaves it 360 more.  What a name that is
 * not allowed led to is known too, so that it can be said by name, but it is not let pass.
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
struct nfset_batch;

struct leases *leases_new(struct box *b);
void leases_free(struct leases *l); /* accepts NULL */

/* Before the answer leaves: when this returns 0 the kernel lets them pass.  `name` is the one that
 * was asked for; is it not allowed (a lenient mode), the addresses are only remembered. */
osb_must_check int leases_grant(struct box *b, const char *name, const struct dns_address *v,
				size_t n, struct err *e);

/* Into a change of the kernel's sets: gives and takes back what box->effective now says about the
 * names.  When it was made: leases_revised(). */
void leases_revise(struct box *b, struct nfset_batch *batch);
void leases_revised(struct box *b);

/* Addresses of names with which the vault has business lead to the proxy (NET_SET_VAULT); called
 * when its bindings have changed, too. */
osb_must_check int leases_divert(struct box *b, struct err *e);

/* Is it leased, and by which name (the newest)?  NULL = not. */
const char *leases_name(const struct box *b, bool v6, const uint8_t bytes[16]);

/* Was it among the addresses of that name? */
bool leases_leads(const struct box *b, const char *name, bool v6, const uint8_t bytes[16]);
