/*
 * codec/gzip.c - stored deflate blocks between a gzip header and trailer.
 */
#include "codec/gzip.h"

#include <errno.h>

#include "base/buf.h"

#define BLOCK_MAX  65535u
#define POLYNOMIAL UINT32_C(0xedb88320)

static int put_le(struct buf *out, uint32_t n, unsigned bytes)
{
	int r = 0;

	for (unsigned i = 0; i < bytes && r == 0; i++, n >>= 8)
		r = buf_append_char(out, (char)(n & 0xff));
	return r;
}

int gzip_begin(struct gzip *z, struct buf *out)
{
	static const unsigned char header[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};

	*z = (struct gzip){.crc = ~UINT32_C(0)};
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? c >> 1 ^ POLYNOMIAL : c >> 1;
		z->table[i] = c;
	}
	return buf_append(out, header, sizeof(header));
}

/* One stored block: a flag byte, the length, and the length inverted. */
static int put_block(struct buf *out, struct view bytes, bool last)
{
	int r = buf_append_char(out, last ? 1 : 0);

	if (r == 0)
		r = put_le(out, (uint32_t)bytes.len, 2);
	if (r == 0)
		r = put_le(out, ~(uint32_t)bytes.len, 2);
	return r == 0 ? buf_append_view(out, bytes) : r;
}

int gzip_put(struct gzip *z, struct buf *out, struct view bytes)
{
	int r = 0;

	for (size_t i = 0; i < bytes.len; i++)
		z->crc = z->table[(z->crc ^ (unsigned char)bytes.p[i]) & 0xff] ^ z->crc >> 8;
	z->size += (uint32_t)bytes.len;
	while (bytes.len > 0 && r == 0) {
		r = put_block(out, view_first(bytes, BLOCK_MAX), /* last= */ false);
		bytes = view_skip(bytes, BLOCK_MAX);
	}
	return r;
}

int gzip_end(struct gzip *z, struct buf *out)
{
	int r = put_block(out, VIEW_NONE, /* last= */ true);

	if (r == 0)
		r = put_le(out, ~z->crc, 4);
	return r == 0 ? put_le(out, z->size, 4) : r;
}
