/*
 * codec/resolv.c - "nameserver" lines; everything else is passed over.
 */
#include "codec/resolv.h"

#include <arpa/inet.h>
#include <stdbool.h>

#define ADDRESS_MAX 64

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The first word of *rest, which is left behind it. */
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

static void add(struct resolv_conf *c, uint32_t address)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->servers[i] == address)
			return;
	if (c->n < RESOLV_MAX)
		c->servers[c->n++] = address;
}

static void take_server(struct resolv_conf *c, struct view word)
{
	char text[ADDRESS_MAX];
	struct in6_addr six;
	struct in_addr four;

	if (word.len == 0 || word.len >= sizeof(text) || view_has(word, '\0')) {
		c->other_n++;
		return;
	}
	memcpy(text, word.p, word.len);
	text[word.len] = '\0';
	if (inet_pton(AF_INET, text, &four) == 1) {
		uint32_t address = ntohl(four.s_addr);

		if (address >> 24 == 127 || address == 0)
			c->loopback_n++;
		else
			add(c, address);
	} else if (inet_pton(AF_INET6, text, &six) == 1 &&
		   (IN6_IS_ADDR_LOOPBACK(&six) || IN6_IS_ADDR_UNSPECIFIED(&six))) {
		c->loopback_n++;
	} else {
		c->other_n++;
	}
}

void resolv_parse(struct view text, struct resolv_conf *ret)
{
	struct view line;

	*ret = (struct resolv_conf){0};
	while (view_split(&text, '\n', &line))
		if (view_is(next_word(&line), "nameserver"))
			take_server(ret, next_word(&line));
}
