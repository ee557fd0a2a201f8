/*
 * execd/pty_ring.h - the last bytes that a terminal printed, by their offset since its beginning.
 *
 * Memory grows with the output up to the ceiling; from then on the oldest bytes are overwritten.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;

struct pty_ring {
	char *mem;
	size_t cap; /* allocated; a power of two, as `max` */
	size_t max;
	uint64_t total; /* bytes ever written: the offset of the next one */
};

void pty_ring_init(struct pty_ring *r, size_t max); /* `max`: a power of two */
void pty_ring_done(struct pty_ring *r);

void pty_ring_write(struct pty_ring *r, struct view bytes);

/* The offset of the oldest byte still here. */
uint64_t pty_ring_start(const struct pty_ring *r);

/*
 * The bytes from *offset on that lie together, at most `n`; empty at the end.  An offset that
 * has been overwritten is moved up to the oldest byte, one beyond the end down to the end.
 */
struct view pty_ring_read(const struct pty_ring *r, uint64_t *offset, size_t n);

/* Appends everything from *offset on (moved as above).  0 or -E2BIG. */
osb_must_check int pty_ring_copy(const struct pty_ring *r, uint64_t *offset, struct buf *out);
