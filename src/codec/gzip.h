/*
 * codec/gzip.h - gzip framing (RFC 1952) without compression: stored blocks and a checksum.
 *
 * Every reader of gzip takes it; what it saves is a compressor inside a small static daemon.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;

struct gzip {
	uint32_t table[256];
	uint32_t crc;
	uint32_t size; /* modulo 2^32, as the format has it */
};

osb_must_check int gzip_begin(struct gzip *z, struct buf *out);
osb_must_check int gzip_put(struct gzip *z, struct buf *out, struct view bytes);
osb_must_check int gzip_end(struct gzip *z, struct buf *out);
