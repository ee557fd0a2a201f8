/*
 * fuzz_docker_config.c - Docker's config.json.
 *
 * Invariants: what is found is a user or a token, without NULs; a refusal has a sentence.
 */
#include <assert.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/docker_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = ERR_NONE;
	struct docker_auth auth;
	struct arena a;
	int r;

	arena_init(&a, 1 << 20);
	r = docker_config_find(view_mem(data, size), VIEW("r.io"), &a, &auth, &e);
	assert(r >= 0 || e.msg[0]);
	if (r > 0)
		assert(auth.username.len > 0 || auth.identity_token.len > 0);
	if (r >= 0)
		assert(!view_has(auth.username, '\0') && !view_has(auth.password, '\0'));
	arena_done(&a);
	return 0;
}
