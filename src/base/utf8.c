/*
 * base/utf8.c - strict UTF-8 (RFC 3629), with a fast way through ASCII.
 */
#include "base/utf8.h"

/* Whole sequence length by lead byte, and the range its second byte must lie in. */
struct lead {
	unsigned char len, low, high;
};

static struct lead lead_of(unsigned char c)
{
	if (c < 0x80)
		return (struct lead){1, 0, 0};
	if (c < 0xc2 || c > 0xf4)
		return (struct lead){0, 0, 0};
	if (c < 0xe0)
		return (struct lead){2, 0x80, 0xbf};
	if (c < 0xf0)
		return (struct lead){3, c == 0xe0 ? 0xa0 : 0x80, c == 0xed ? 0x9f : 0xbf};
	return (struct lead){4, c == 0xf0 ? 0x90 : 0x80, c == 0xf4 ? 0x8f : 0xbf};
}

int utf8_next(struct view v, uint32_t *ret_char)
{
	const unsigned char *p = (const unsigned char *)v.p;
	struct lead lead;
	uint32_t c;

	if (v.len == 0)
		return 0;
	lead = lead_of(p[0]);
	if (lead.len == 0)
		return -1;
	c = lead.len == 1 ? p[0] : p[0] & (0x7fu >> lead.len);
	for (int i = 1; i < lead.len; i++) {
		if ((size_t)i >= v.len)
			return 0;
		if (p[i] < (i == 1 ? lead.low : 0x80) || p[i] > (i == 1 ? lead.high : 0xbf))
			return -i;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (ret_char)
		*ret_char = c;
	return lead.len;
}

bool utf8_valid(struct view v)
{
	return utf8_valid_prefix(v) == v.len;
}

/* Index of the first byte at or behind `at` that is not ASCII, or v.len. */
static size_t skip_ascii(struct view v, size_t at)
{
	const uint64_t high = 0x8080808080808080u;
	uint64_t w[4];

	while (v.len - at >= sizeof(w)) {
		memcpy(w, v.p + at, sizeof(w));
		if ((w[0] | w[1] | w[2] | w[3]) & high)
			break;
		at += sizeof(w);
	}
	while (v.len - at >= sizeof(w[0])) {
		memcpy(w, v.p + at, sizeof(w[0]));
		if (w[0] & high)
			break;
		at += sizeof(w[0]);
	}
	while (at < v.len && (unsigned char)v.p[at] < 0x80)
		at++;
	return at;
}

size_t utf8_valid_prefix(struct view v)
{
	size_t at = 0;

	while (at < v.len) {
		int n;

		if ((unsigned char)v.p[at] < 0x80) {
			at = skip_ascii(v, at);
			continue;
		}
		n = utf8_next(view_mem(v.p + at, v.len - at), NULL);
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	return at;
}

size_t utf8_incomplete_tail(struct view v)
{
	for (size_t n = 1; n <= 3 && n <= v.len; n++) {
		unsigned char c = (unsigned char)v.p[v.len - n];

		if (c < 0x80)
			return 0;
		/* Only the nearest lead byte can begin what is incomplete at the end. */
		if (c >= 0xc0)
			return utf8_next(view_mem(v.p + v.len - n, n), NULL) == 0 ? n : 0;
	}
	return 0;
}

size_t utf8_format(uint32_t c, char ret[4])
{
	if (c < 0x80) {
		ret[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		ret[0] = (char)(0xc0 | c >> 6);
		ret[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	/* What is no character is written as the replacement character. */
	if ((c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
		c = 0xfffd;
	if (c < 0x10000) {
		ret[0] = (char)(0xe0 | c >> 12);
		ret[1] = (char)(0x80 | (c >> 6 & 0x3f));
		ret[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	ret[0] = (char)(0xf0 | c >> 18);
	ret[1] = (char)(0x80 | (c >> 12 & 0x3f));
	ret[2] = (char)(0x80 | (c >> 6 & 0x3f));
	ret[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}
