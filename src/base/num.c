/*
 * base/num.c - decimal and octal numbers from text, the whole text or nothing; and to it.
 */
#include "base/num.h"

static bool parse_up_to(struct view text, uint64_t max, uint64_t *ret)
{
	uint64_t n = 0;

	if (text.len == 0)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		unsigned digit = (unsigned)(unsigned char)text.p[i] - '0';

		if (digit > 9 || n > max / 10 || digit > max - n * 10)
			return false;
		n = n * 10 + digit;
	}
	*ret = n;
	return true;
}

bool num_parse_u64(struct view text, uint64_t *ret)
{
	return parse_up_to(text, UINT64_MAX, ret);
}

bool num_parse_i64(struct view text, int64_t *ret)
{
	bool negative = text.len > 0 && text.p[0] == '-';
	uint64_t n, max = (uint64_t)INT64_MAX + (negative ? 1 : 0);

	if (!parse_up_to(negative ? view_skip(text, 1) : text, max, &n))
		return false;
	/* Written so that INT64_MIN needs no signed overflow. */
	*ret = negative && n > 0 ? -(int64_t)(n - 1) - 1 : (int64_t)n;
	return true;
}

bool num_parse_u32(struct view text, uint32_t *ret)
{
	uint64_t n;

	if (!parse_up_to(text, UINT32_MAX, &n))
		return false;
	*ret = (uint32_t)n;
	return true;
}

bool num_parse_octal(struct view text, uint32_t *ret)
{
	uint32_t n = 0;

	if (text.len == 0 || text.len > 6)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		if (text.p[i] < '0' || text.p[i] > '7')
			return false;
		n = n << 3 | (uint32_t)(text.p[i] - '0');
	}
	*ret = n;
	return true;
}

struct view num_format_u64(uint64_t n, char room[NUM_DECIMAL_MAX])
{
	size_t at = NUM_DECIMAL_MAX;

	do {
		room[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	return view_mem(room + at, NUM_DECIMAL_MAX - at);
}
