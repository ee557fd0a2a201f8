/*
 * fuzz_chunked.c - the chunked coding.
 *
 * Invariants: cut into other pieces the input gives the same body, the same result and the same
 * rest; the body is never longer than the input.  The first byte seeds the cuts.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/chunked.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
	int result;
	size_t rest;
};

/* Cuts of 1..16 bytes from a small generator; seed 0 = one piece. */
static struct outcome decode(struct view text, uint32_t seed, struct buf *body)
{
	struct outcome o = {CHUNKED_MORE, 0};
	bool whole = seed == 0;
	struct chunked c;
	struct view data;
	struct err e = ERR_NONE;

	chunked_init(&c);
	while (text.len > 0 && o.result == CHUNKED_MORE) {
		struct view in = whole ? text : view_first(text, 1 + (seed >> 28));
		size_t n = in.len;

		seed = seed * 1664525 + 1013904223;
		while ((o.result = chunked_next(&c, &in, &data, &e)) == CHUNKED_DATA) {
			assert(data.len > 0);
			int r = buf_append_view(body, data);

			assert(r == 0);
		}
		assert(o.result != CHUNKED_MORE || in.len == 0);
		text = view_skip(text, n - in.len);
	}
	assert(o.result >= 0 || (o.result == -EINVAL && e.msg[0] != '\0'));
	o.rest = text.len;
	return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	osb_cleanup(buf_done) struct buf once = BUF_INIT(1 << 24), pieces = BUF_INIT(1 << 24);
	struct view text = view_skip(view_mem(data, size), 1);
	struct outcome a, b;

	a = decode(text, 0, &once);
	b = decode(text, size > 0 ? 1 + data[0] * 2654435761u : 1, &pieces);
	assert(a.result == b.result && a.rest == b.rest);
	assert(view_eq(buf_view(&once), buf_view(&pieces)));
	assert(once.len <= text.len);
	return 0;
}
