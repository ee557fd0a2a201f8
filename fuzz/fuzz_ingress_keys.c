/*
 * Keys that are taken have names of their own and a secret each.
 */
#include <stdlib.h>

#include "base/err.h"
#include "ingress/keys.h"
#include "policy/preview.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct route_key *keys = NULL;
	struct err e = ERR_NONE;
	size_t n = 0;

	if (keys_parse(view_mem(data, size), &keys, &n, &e) < 0) {
		must(e.code < 0 && e.msg[0] && !keys);
		return 0;
	}
	must(n >= 1 && n <= PREVIEW_KEYS_MAX);
	for (size_t i = 0; i < n; i++) {
		must(keys[i].len > 0 && keys[i].len <= ROUTE_SECRET_MAX);
		for (size_t j = 0; j < i; j++)
			must(keys[i].id != keys[j].id);
	}
	free(keys);
	return 0;
}
