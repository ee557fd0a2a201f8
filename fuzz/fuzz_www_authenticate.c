/*
 * fuzz_www_authenticate.c - challenges of hostile registries.
 *
 * Invariants: the walk ends, takes from the front alone, and no value holds a control character.
 */
#include <assert.h>
#include <stdint.h>

#include "base/arena.h"
#include "codec/http_char.h"
#include "codec/www_authenticate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view rest = view_mem(data, size);
	struct www_challenge c;
	struct arena a;
	int r;

	arena_init(&a, 1 << 20);
	do {
		struct view before = rest;

		r = www_authenticate_next(&a, &rest, &c);
		assert(rest.len <= before.len);
		if (r <= 0)
			continue;
		assert(rest.len < before.len);
		assert(c.scheme.len > 0 && http_char_all(c.scheme, HTTP_TCHAR));
		assert(http_char_all(c.realm, HTTP_FIELD) && http_char_all(c.service, HTTP_FIELD));
		assert(http_char_all(c.scope, HTTP_FIELD) && http_char_all(c.error, HTTP_FIELD));
	} while (r > 0);
	arena_done(&a);
	return 0;
}
