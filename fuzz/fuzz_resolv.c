/*
 * resolv.conf: at most three servers, each once, none of them on loopback.
 */
#include <assert.h>
#include <stdint.h>

#include "codec/resolv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct resolv_conf c;

	resolv_parse(view_mem(data, size), &c);
	assert(c.n <= RESOLV_MAX);
	for (unsigned i = 0; i < c.n; i++) {
		assert(c.servers[i] >> 24 != 127 && c.servers[i] != 0);
		for (unsigned j = 0; j < i; j++)
			assert(c.servers[i] != c.servers[j]);
	}
	return 0;
}
