/*
 * A hello that is complete stays the same whatever follows it, and one that is not may not be
 * decided by bytes that have not come.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/tls_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tls_hello whole, part;
	int r = tls_hello_parse(view_mem(data, size), &whole);

	if (r == 1 && memchr(whole.name, '\0', sizeof(whole.name)) == NULL)
		abort();
	for (size_t n = 0; n < size && n < 512; n++) {
		int p = tls_hello_parse(view_mem(data, n), &part);

		if (p != 0 && p != r)
			abort();
		if (p == 1 && strcmp(part.name, whole.name) != 0)
			abort();
	}
	return 0;
}
