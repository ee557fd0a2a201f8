/*
 * codec/name_servers.c - addresses are literal: nobody could look a name up yet.
 */
#include "codec/name_servers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"

static bool is_loopback(const struct name_server *s)
{
	static const uint8_t one[16] = {[15] = 1};

	return s->v6 ? memcmp(s->bytes, one, sizeof(one)) == 0 : s->bytes[0] == 127;
}

static bool is_same(const struct name_server *a, const struct name_server *b)
{
	return a->v6 == b->v6 && a->port == b->port && memcmp(a->bytes, b->bytes, 16) == 0;
}

/* Those on loopback stay behind the others. */
static bool add(struct name_servers *all, const struct name_server *s)
{
	size_t at = all->n;

	for (size_t i = 0; i < all->n; i++)
		if (is_same(&all->v[i], s))
			return true;
	if (all->n == NAME_SERVERS_MAX)
		return false;
	while (!is_loopback(s) && at > 0 && is_loopback(&all->v[at - 1]))
		at--;
	memmove(&all->v[at + 1], &all->v[at], (all->n - at) * sizeof(*s));
	all->v[at] = *s;
	all->n++;
	return true;
}

static bool read_address(struct view text, struct name_server *ret)
{
	char copy[INET6_ADDRSTRLEN];
	bool v6 = view_has(text, ':');

	if (text.len >= sizeof(copy) || view_has(text, '\0'))
		return false;
	memcpy(copy, text.p, text.len);
	copy[text.len] = '\0';
	*ret = (struct name_server){.v6 = v6, .port = NAME_SERVERS_PORT};
	return inet_pton(v6 ? AF_INET6 : AF_INET, copy, ret->bytes) == 1;
}

static bool read_server(struct view text, struct name_server *ret)
{
	struct view port = VIEW_NONE;
	uint32_t number = NAME_SERVERS_PORT;
	size_t colon;

	if (view_starts(text, VIEW("["))) {
		size_t end = view_find(text, ']');

		port = view_skip(text, end + 1);
		if (end == text.len || (port.len && port.p[0] != ':'))
			return false;
		text = view_first(view_skip(text, 1), end - 1);
		if (!view_has(text, ':'))
			return false;
	} else if (colon = view_find(text, ':'), !view_has(view_skip(text, colon + 1), ':')) {
		port = view_skip(text, colon);
		text = view_first(text, colon);
	}
	if (port.len &&
	    (!num_parse_u32(view_skip(port, 1), &number) || number < 1 || number > 65535))
		return false;
	if (!read_address(text, ret))
		return false;
	ret->port = (uint16_t)number;
	return true;
}

int name_servers_parse(struct view text, struct name_servers *ret, struct err *e)
{
	struct name_servers all = {.n = 0};
	struct view part;

	while (view_split(&text, ',', &part)) {
		struct name_server s;

		part = view_trim(part);
		if (part.len == 0)
			continue;
		if (!read_server(part, &s))
			return err_set(e, -EINVAL, "'%.*s' is no address of a name server",
				       (int)MIN(part.len, (size_t)80), part.p);
		if (!add(&all, &s))
			return err_set(e, -E2BIG, "more than %d name servers are too many",
				       NAME_SERVERS_MAX);
	}
	*ret = all;
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct view next_word(struct view *rest)
{
	size_t from = 0, to;
	struct view word;

	while (from < rest->len && is_blank(rest->p[from]))
		from++;
	for (to = from; to < rest->len && !is_blank(rest->p[to]);)
		to++;
	word = view_first(view_skip(*rest, from), to - from);
	*rest = view_skip(*rest, to);
	return word;
}

void name_servers_resolv(struct view text, struct name_servers *ret)
{
	struct view line;

	*ret = (struct name_servers){.n = 0};
	while (view_split(&text, '\n', &line)) {
		struct name_server s;

		if (view_is(next_word(&line), "nameserver") && read_address(next_word(&line), &s))
			(void)add(ret, &s); /* those that do not fit are not asked */
	}
}
