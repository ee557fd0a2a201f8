/*
 * policy/net_special.c - two tables of prefixes.
 */
#include "policy/net_special.h"

#include <stddef.h>
#include <string.h>

#include "base/macro.h"

struct special {
	uint8_t bytes[16];
	unsigned bits;
	const char *kind;
};

static const struct special v4[] = {
	{{0}, 8, "unspecified"},	{{10}, 8, "private"},
	{{100, 64}, 10, "shared"}, /* behind carriers' NAT; metadata of Alibaba's cloud */
	{{127}, 8, "loopback"},		{{168, 63, 129, 16}, 32, "metadata"}, /* Azure's */
	{{169, 254}, 16, "link-local"}, {{172, 16}, 12, "private"},
	{{192, 0, 0}, 24, "protocol"}, /* metadata of Oracle's cloud */
	{{192, 88, 99}, 24, "relay"},	{{192, 168}, 16, "private"},
	{{224}, 4, "multicast"},	{{240}, 4, "reserved"},
};

static const struct special v6_table[] = {
	{{0}, 128, "unspecified"},
	{{[15] = 1}, 128, "loopback"},
	{{0}, 96, "mapped"},
	{{[10] = 0xff, [11] = 0xff}, 96, "mapped"},
	{{[8] = 0xff, [9] = 0xff}, 96, "mapped"},
	{{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, "translated"},
	{{0x20, 0x01}, 32, "tunnelled"}, /* Teredo */
	{{0xfc}, 7, "private"},
	{{0xfe, 0x80}, 10, "link-local"},
	{{0xfe, 0xc0}, 10, "private"},
	{{0xff}, 8, "multicast"},
};

static bool has(const struct special *s, const uint8_t *bytes)
{
	unsigned whole = s->bits / 8, rest = s->bits % 8;

	if (memcmp(s->bytes, bytes, whole) != 0)
		return false;
	return rest == 0 || (s->bytes[whole] ^ bytes[whole]) >> (8 - rest) == 0;
}

static const char *find(const struct special *table, size_t n, const uint8_t *bytes)
{
	for (size_t i = 0; i < n; i++)
		if (has(&table[i], bytes))
			return table[i].kind;
	return NULL;
}

const char *net_special(bool v6, const uint8_t bytes[16])
{
	static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};

	if (!v6)
		return find(v4, ARRAY_LEN(v4), bytes);
	if (memcmp(bytes, nat64, sizeof(nat64)) == 0)
		return find(v4, ARRAY_LEN(v4), bytes + 12);
	if (bytes[0] == 0x20 && bytes[1] == 0x02) /* 6to4 */
		return find(v4, ARRAY_LEN(v4), bytes + 2);
	return find(v6_table, ARRAY_LEN(v6_table), bytes);
}
