/*
 * fuzz_range.c - the Range header.
 *
 * Invariants: a range that is served lies inside the content and is not empty; outputs are
 * untouched otherwise; the size alone never makes a header malformed.  The first 8 bytes are the
 * size.
 */
#include <assert.h>
#include <stdint.h>

#include "base/bytes.h"
#include "codec/range.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum range_result check(struct view header, uint64_t size)
{
	const uint64_t untouched = 0x5eed;
	uint64_t start = untouched, len = untouched;
	enum range_result r = range_parse(header, size, &start, &len);

	if (r == RANGE_OK)
		assert(len > 0 && start < size && len <= size - start);
	else
		assert(start == untouched && len == untouched);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view header;
	enum range_result empty, some, huge;

	if (size < 8)
		return 0;
	header = view_mem(data + 8, size - 8);
	some = check(header, bytes_get_be64(data));
	empty = check(header, 0);
	huge = check(header, UINT64_MAX);
	assert(empty != RANGE_OK);
	assert((some == RANGE_MALFORMED) == (empty == RANGE_MALFORMED));
	assert((some == RANGE_MALFORMED) == (huge == RANGE_MALFORMED));
	assert((some == RANGE_IGNORED) == (huge == RANGE_IGNORED));
	return 0;
}
