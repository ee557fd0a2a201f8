/*
 * execd/pty_ring.c - see pty_ring.h.
 */
#include "execd/pty_ring.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define FIRST_BYTES 4096

void pty_ring_init(struct pty_ring *r, size_t max)
{
	*r = (struct pty_ring){.max = max};
}

void pty_ring_done(struct pty_ring *r)
{
	free(r->mem);
	pty_ring_init(r, r->max);
}

/* Bytes have never wrapped before `cap` reaches `max`, so growing keeps every position. */
static void grow(struct pty_ring *r, size_t n)
{
	size_t cap = r->cap ? r->cap : MIN((size_t)FIRST_BYTES, r->max);

	if (r->cap == r->max)
		return;
	while (cap < r->max && r->total + n > cap)
		cap *= 2;
	if (cap == r->cap)
		return;
	r->mem = mem_resize(r->mem, cap, 1);
	r->cap = cap;
}

void pty_ring_write(struct pty_ring *r, struct view bytes)
{
	grow(r, bytes.len);
	while (bytes.len) {
		size_t at = (size_t)(r->total & (r->cap - 1));
		size_t n = MIN(bytes.len, r->cap - at);

		memcpy(r->mem + at, bytes.p, n);
		r->total += n;
		bytes = view_skip(bytes, n);
	}
}

uint64_t pty_ring_start(const struct pty_ring *r)
{
	return r->total > r->max ? r->total - r->max : 0;
}

struct view pty_ring_read(const struct pty_ring *r, uint64_t *offset, size_t n)
{
	uint64_t from = MAX(*offset, pty_ring_start(r));
	size_t at;

	*offset = from = MIN(from, r->total);
	if (from == r->total)
		return VIEW_NONE;
	at = (size_t)(from & (r->cap - 1));
	n = MIN(n, r->cap - at);
	return view_mem(r->mem + at, (size_t)MIN((uint64_t)n, r->total - from));
}

int pty_ring_copy(const struct pty_ring *r, uint64_t *offset, struct buf *out)
{
	struct view piece = pty_ring_read(r, offset, r->max);
	uint64_t at = *offset;

	while (piece.len) {
		int result = buf_append_view(out, piece);

		if (result < 0)
			return result;
		at += piece.len;
		piece = pty_ring_read(r, &at, r->max);
	}
	return 0;
}
