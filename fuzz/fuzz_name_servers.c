/*
 * A list that is accepted has no server twice, and those on loopback behind the others.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "codec/name_servers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct name_servers *all)
{
	bool loopback = false;

	if (all->n > NAME_SERVERS_MAX)
		abort();
	for (size_t i = 0; i < all->n; i++) {
		const struct name_server *s = &all->v[i];

		if (!s->v6) {
			if (loopback && s->bytes[0] != 127)
				abort();
			loopback = loopback || s->bytes[0] == 127;
		}
		for (size_t k = 0; k < i; k++)
			if (memcmp(s, &all->v[k], sizeof(*s)) == 0)
				abort();
		if (s->port == 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view text = view_mem(data, size);
	struct name_servers all;
	struct err e = ERR_NONE;

	if (name_servers_parse(text, &all, &e) == 0)
		check(&all);
	name_servers_resolv(text, &all);
	check(&all);
	return 0;
}
