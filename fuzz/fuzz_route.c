/*
 * A route is made of parts of its text; what we sign ourselves is valid, and one bit off is not.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check(const struct route_to *r, struct view text)
{
	static const struct route_key key = {.id = 'k', .len = 3, .secret = "abc"};
	char signature[ROUTE_SIGNATURE + 1], expires[ROUTE_B36_MAX];
	struct route_to own = *r;

	must(r->port > 0 && r->id.len > 0 && r->id.len <= ROUTE_ID_MAX);
	must(r->id.p >= text.p && r->id.p + r->id.len <= text.p + text.len);
	route_sign(&key, r->id, r->port, 77, signature);
	route_b36_format(77, expires);
	own.is_signed = true;
	own.expires = view_of(expires);
	own.signature = view_of(signature);
	must(route_verify(&key, 1, &own, 77) == ROUTE_VALID);
	must(route_verify(&key, 1, &own, 78) == ROUTE_EXPIRED);
	own.port ^= 1;
	must(route_verify(&key, 1, &own, 77) == ROUTE_FORGED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view text = view_mem(data, size), rest;
	struct route_to r;

	if (route_parse_label(text, &r))
		check(&r, text);
	for (int i = 0; i < 2; i++) {
		if (!route_parse_path(text, i, &r, &rest))
			continue;
		check(&r, text);
		must(rest.len > 0);
	}
	return 0;
}
