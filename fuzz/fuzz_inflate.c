/*
 * fuzz_inflate.c - DEFLATE decompression.
 *
 * Invariants: no more than the ceiling comes out, what was in the buffer before stays, and a larger
 * ceiling never changes the result of what fitted.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include "base/buf.h"
#include "codec/inflate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	osb_cleanup(buf_done) struct buf small = BUF_INIT(4096), large = BUF_INIT(1 << 20);
	int a, b;

	assert(buf_append_str(&small, "before") == 0);
	a = inflate_all(view_mem(data, size), &small);
	b = inflate_all(view_mem(data, size), &large);
	assert(a == 0 || a == -EINVAL || a == -E2BIG);
	assert(view_starts(buf_view(&small), VIEW("before")) && small.len <= 4096);
	if (a == 0)
		assert(b == 0 && view_eq(view_skip(buf_view(&small), 6), buf_view(&large)));
	return 0;
}
