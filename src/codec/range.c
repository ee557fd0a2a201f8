/*
 * codec/range.c - the Range header (RFC 9110, 14.2).
 *
 * Every range of the list must be well-formed; the first that the content can satisfy is served.
 */
#include "codec/range.h"

#include <stdbool.h>

#include "codec/http_char.h"

/* Digits as a number; one that does not fit is larger than any file and becomes UINT64_MAX. */
static bool parse_pos(struct view text, uint64_t *ret)
{
	bool too_large = false;
	uint64_t n = 0;

	if (text.len == 0)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		unsigned digit = (unsigned)(unsigned char)text.p[i] - '0';

		if (digit > 9)
			return false;
		too_large |= __builtin_mul_overflow(n, 10, &n);
		too_large |= __builtin_add_overflow(n, digit, &n);
	}
	*ret = too_large ? UINT64_MAX : n;
	return true;
}

/* One "a-b", "a-" or "-n". */
static enum range_result parse_spec(struct view spec, uint64_t size, uint64_t *ret_start,
				    uint64_t *ret_len)
{
	size_t dash = view_find(spec, '-');
	struct view first = view_first(spec, dash), last = view_skip(spec, dash + 1);
	uint64_t start, end = UINT64_MAX;

	if (dash == spec.len)
		return RANGE_MALFORMED;
	if (first.len == 0) {
		if (!parse_pos(last, &end))
			return RANGE_MALFORMED;
		*ret_len = end < size ? end : size;
		*ret_start = size - *ret_len;
		return *ret_len > 0 ? RANGE_OK : RANGE_UNSATISFIABLE;
	}
	if (!parse_pos(first, &start) || (last.len > 0 && !parse_pos(last, &end)) || end < start)
		return RANGE_MALFORMED;
	if (start >= size)
		return RANGE_UNSATISFIABLE;
	*ret_start = start;
	*ret_len = (end < size - 1 ? end : size - 1) - start + 1;
	return RANGE_OK;
}

enum range_result range_parse(struct view header, uint64_t size, uint64_t *ret_start,
			      uint64_t *ret_len)
{
	size_t equals = view_find(header, '=');
	struct view unit = view_first(header, equals), list = view_skip(header, equals + 1), spec;
	enum range_result result = RANGE_MALFORMED;
	uint64_t start = 0, len = 0;

	if (equals == header.len || unit.len == 0 || !http_char_all(unit, HTTP_TCHAR))
		return RANGE_MALFORMED;
	if (!view_iis(unit, "bytes"))
		return RANGE_IGNORED;
	while (view_split(&list, ',', &spec)) {
		uint64_t this_start, this_len;
		enum range_result one;

		spec = view_trim(spec);
		if (spec.len == 0)
			continue;
		one = parse_spec(spec, size, &this_start, &this_len);
		if (one == RANGE_MALFORMED)
			return RANGE_MALFORMED;
		if (result == RANGE_OK)
			continue;
		result = one;
		if (one == RANGE_OK) {
			start = this_start;
			len = this_len;
		}
	}
	if (result == RANGE_OK) {
		*ret_start = start;
		*ret_len = len;
	}
	return result;
}
