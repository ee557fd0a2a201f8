/*
 * codec/lines.c - finds line ends 16 bytes at a time, each byte once.
 */
#include "codec/lines.h"

#include <stdint.h>

#include "base/utf8.h"

typedef char lanes __attribute__((vector_size(16)));

/* Index of the first "\n" or "\r" at or behind `i`, or n. */
static size_t find_end(const char *p, size_t i, size_t n)
{
	for (; i + 16 <= n; i += 16) {
		uint64_t word[2];
		lanes v, hit;

		memcpy(&v, p + i, sizeof(v));
		hit = (lanes)((v == '\n') | (v == '\r'));
		memcpy(word, &hit, sizeof(word));
		if (word[0])
			return i + (size_t)__builtin_ctzll(word[0]) / 8;
		if (word[1])
			return i + 8 + (size_t)__builtin_ctzll(word[1]) / 8;
	}
	while (i < n && p[i] != '\n' && p[i] != '\r')
		i++;
	return i;
}

/* Takes `n` bytes as a piece of the unfinished line. */
static void take_part(struct lines *l, struct view *in, size_t n, struct view *ret)
{
	*ret = view_first(*in, n);
	*in = view_skip(*in, n);
	l->scanned = 0;
	l->cut = true;
}

enum lines_result lines_next(struct lines *l, struct view *in, size_t max_line, struct view *ret)
{
	for (;;) {
		size_t window, at;
		bool was_cut;

		if (l->after_cr && in->len > 0) {
			l->after_cr = false;
			if (in->p[0] == '\n')
				*in = view_skip(*in, 1);
		}
		window = in->len > max_line ? max_line + 1 : in->len;
		at = find_end(in->p, l->scanned < window ? l->scanned : window, window);
		if (at == window && in->len < max_line) {
			l->scanned = at;
			return LINES_MORE;
		}
		if (at == window) {
			struct view part = view_first(*in, max_line);

			take_part(l, in, part.len - utf8_incomplete_tail(part), ret);
			return LINES_PART;
		}
		l->after_cr = in->p[at] == '\r';
		*ret = view_first(*in, at);
		*in = view_skip(*in, at + 1);
		l->scanned = 0;
		was_cut = l->cut;
		l->cut = false;
		if (at > 0 || !was_cut)
			return LINES_LINE;
	}
}

bool lines_rest(struct lines *l, struct view *in, bool at_end, struct view *ret)
{
	size_t n = in->len - (at_end ? 0 : utf8_incomplete_tail(*in));

	if (n == 0)
		return false;
	take_part(l, in, n, ret);
	return true;
}
