/*
 * base/rand.c - random bytes from the kernel, and the ids made of them.
 */
#include "base/rand.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/hex.h"

void rand_bytes(void *p, size_t n)
{
	unsigned char *at = p;

	while (n > 0) {
		ssize_t got = getrandom(at, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		/* Predictable ids would be worse than none. */
		if (got <= 0)
			abort();
		at += got;
		n -= (size_t)got;
	}
}

void rand_hex(char ret[RAND_HEX_LEN + 1])
{
	unsigned char raw[RAND_HEX_LEN / 2];

	rand_bytes(raw, sizeof(raw));
	hex_format(raw, sizeof(raw), ret);
}

void rand_uuid(char ret[RAND_UUID_LEN + 1])
{
	static const size_t groups[] = {4, 2, 2, 2, 6};
	unsigned char raw[16];
	size_t from = 0;

	rand_bytes(raw, sizeof(raw));
	raw[6] = (unsigned char)((raw[6] & 0x0f) | 0x40); /* version 4 */
	raw[8] = (unsigned char)((raw[8] & 0x3f) | 0x80); /* RFC 9562 variant */
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (i > 0)
			*ret++ = '-';
		hex_format(raw + from, groups[i], ret);
		ret += 2 * groups[i];
		from += groups[i];
	}
}
