/*
 * codec/quantity.c - digits, a unit, and no overflow.
 */
#include "codec/quantity.h"

#include <stddef.h>

#include "base/macro.h"
#include "base/num.h"

#define CPU_MILLI_MAX UINT64_C(1000000000)
#define BYTES_MAX     (UINT64_C(1) << 60)

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "1.25" as thousandths; more than three decimals are cut off. */
static bool parse_cores(struct view text, uint64_t *ret)
{
	size_t dot = view_find(text, '.');
	struct view decimals = view_skip(text, dot + 1);
	uint64_t whole = 0, milli = 0, scale = 100;

	if (dot > 0 && !num_parse_u64(view_first(text, dot), &whole))
		return false;
	if (dot == text.len - 1 || (dot == 0 && decimals.len == 0))
		return false;
	for (size_t i = 0; i < decimals.len; i++, scale /= 10) {
		if (!is_digit(decimals.p[i]))
			return false;
		milli += (uint64_t)(decimals.p[i] - '0') * scale;
	}
	if (whole > CPU_MILLI_MAX / 1000)
		return false;
	*ret = whole * 1000 + milli;
	return true;
}

bool quantity_cpu_milli(struct view text, uint64_t *ret)
{
	uint64_t n;

	text = view_trim(text);
	if (text.len == 0)
		return false;
	if (text.p[text.len - 1] == 'm') {
		if (!num_parse_u64(view_first(text, text.len - 1), &n))
			return false;
	} else if (!parse_cores(text, &n)) {
		return false;
	}
	if (n == 0 || n > CPU_MILLI_MAX)
		return false;
	*ret = n;
	return true;
}

bool quantity_bytes(struct view text, uint64_t *ret)
{
	static const struct {
		const char *unit;
		uint64_t factor;
	} units[] = {
		{"", 1},
		{"b", 1},
		{"k", 1000},
		{"kb", 1000},
		{"ki", UINT64_C(1) << 10},
		{"m", 1000000},
		{"mb", 1000000},
		{"mi", UINT64_C(1) << 20},
		{"g", 1000000000},
		{"gb", 1000000000},
		{"gi", UINT64_C(1) << 30},
		{"t", UINT64_C(1000000000000)},
		{"tb", UINT64_C(1000000000000)},
		{"ti", UINT64_C(1) << 40},
	};
	size_t digits = 0;
	uint64_t n;

	text = view_trim(text);
	while (digits < text.len && is_digit(text.p[digits]))
		digits++;
	if (!num_parse_u64(view_first(text, digits), &n) || n == 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (!view_iis(view_skip(text, digits), units[i].unit))
			continue;
		if (n > BYTES_MAX / units[i].factor)
			return false;
		*ret = n * units[i].factor;
		return true;
	}
	return false;
}
