/*
 * codec/base64.c - base64 with padding (RFC 4648, section 4).
 */
#include "codec/base64.h"

#include <errno.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_format(const void *p, size_t n, char *ret)
{
	const unsigned char *in = p;

	for (; n > 0; in += 3, ret += 4) {
		uint32_t bits = (uint32_t)in[0] << 16;

		if (n > 1)
			bits |= (uint32_t)in[1] << 8;
		if (n > 2)
			bits |= in[2];
		ret[0] = alphabet[bits >> 18];
		ret[1] = alphabet[bits >> 12 & 63];
		ret[2] = n > 1 ? alphabet[bits >> 6 & 63] : '=';
		ret[3] = n > 2 ? alphabet[bits & 63] : '=';
		n -= n < 3 ? n : 3;
	}
	*ret = '\0';
}

static int digit_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

ssize_t base64_parse(struct view text, void *ret, size_t max)
{
	unsigned char *out = ret;
	size_t padding = 0, n;

	if (text.len % 4 != 0)
		return -EINVAL;
	while (padding < 2 && padding < text.len && text.p[text.len - 1 - padding] == '=')
		padding++;
	n = text.len / 4 * 3 - padding;
	if (n > max)
		return -E2BIG;

	text.len -= padding;
	for (uint32_t bits = 0, i = 0; i < text.len; i++) {
		int digit = digit_value(text.p[i]);

		if (digit < 0)
			return -EINVAL;
		bits = bits << 6 | (uint32_t)digit;
		if (i % 4 != 0)
			*out++ = (unsigned char)(bits >> (6 - 2 * (i % 4)));
		/* What the last digit holds beyond the last byte. */
		if (i + 1 == text.len && padding > 0 && (bits & (padding == 1 ? 3u : 15u)) != 0)
			return -EINVAL;
	}
	return (ssize_t)n;
}
