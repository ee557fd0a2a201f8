/*
 * egress/lookup.h - addresses of a name that we want to call ourselves.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

struct dns_address;
struct egress;
struct err;
struct lookup;

/* Called once, with at least one address or with `n` 0 and the reason; the lookup may be freed in
 * it. */
typedef void lookup_fn(void *arg, const struct dns_address *v, size_t n, const struct err *e);

/* Of IPv4 if there are any.  Never called back from within. */
osb_must_check int lookup_new(struct egress *g, const char *name, uint32_t timeout_s, lookup_fn *fn,
			      void *arg, struct lookup **ret, struct err *e);
void lookup_free(struct lookup *l); /* accepts NULL; no callback follows */
