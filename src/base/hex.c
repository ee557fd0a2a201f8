/*
 * base/hex.c - bytes as lower-case hexadecimal digits, and back.
 */
#include "base/hex.h"

static const char digits[] = "0123456789abcdef";

void hex_format(const void *p, size_t n, char *ret)
{
	const unsigned char *in = p;

	for (size_t i = 0; i < n; i++) {
		*ret++ = digits[in[i] >> 4];
		*ret++ = digits[in[i] & 15];
	}
	*ret = '\0';
}

int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool hex_parse(struct view text, void *ret, size_t n)
{
	unsigned char *out = ret;

	if (text.len % 2 != 0 || text.len / 2 != n)
		return false;
	for (size_t i = 0; i < text.len; i++)
		if (hex_digit(text.p[i]) < 0)
			return false;
	for (size_t i = 0; i < n; i++) {
		unsigned high = (unsigned)hex_digit(text.p[2 * i]);
		unsigned low = (unsigned)hex_digit(text.p[2 * i + 1]);

		out[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}
