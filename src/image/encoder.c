/*
 * image/encoder.c - zlib and zstd the other way round.
 */
#include "image/encoder.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/err.h"
#include "base/mem.h"

#define OUT_BYTES   (256 * 1024)
#define GZIP_LEVEL  4 /* twice as fast as the usual, and not much larger */
#define GZIP_WINDOW (15 + 16)
#define ZSTD_LEVEL  3

struct encoder {
	int fd;
	enum encoder_kind kind;
	struct sha256 plain, raw;
	uint64_t raw_bytes;
	char *out;
	z_stream gzip;
	ZSTD_CStream *zstd;
};

static int put(struct encoder *c, struct view bytes, struct err *e)
{
	sha256_add(&c->raw, bytes);
	c->raw_bytes += bytes.len;
	while (bytes.len > 0) {
		ssize_t n = write(c->fd, bytes.p, bytes.len);

		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "write a blob: %m");
		if (n > 0)
			bytes = view_skip(bytes, (size_t)n);
	}
	return 0;
}

static int run_gzip(struct encoder *c, struct view in, bool end, struct err *e)
{
	int r = 0, z;

	c->gzip.next_in = (Bytef *)(uintptr_t)in.p;
	c->gzip.avail_in = (uInt)in.len;
	do {
		c->gzip.next_out = (Bytef *)c->out;
		c->gzip.avail_out = OUT_BYTES;
		z = deflate(&c->gzip, end ? Z_FINISH : Z_NO_FLUSH);
		if (z == Z_STREAM_ERROR)
			return err_set(e, -EIO, "gzip failed");
		r = put(c, view_mem(c->out, OUT_BYTES - c->gzip.avail_out), e);
	} while (r == 0 && (end ? z != Z_STREAM_END : c->gzip.avail_out == 0));
	return r;
}

static int run_zstd(struct encoder *c, struct view bytes, bool end, struct err *e)
{
	ZSTD_inBuffer in = {bytes.p, bytes.len, 0};
	size_t left;
	int r;

	do {
		ZSTD_outBuffer out = {c->out, OUT_BYTES, 0};

		left = ZSTD_compressStream2(c->zstd, &out, &in, end ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return err_set(e, -EIO, "zstd failed: %s", ZSTD_getErrorName(left));
		r = put(c, view_mem(c->out, out.pos), e);
	} while (r == 0 && (end ? left > 0 : in.pos < in.size));
	return r;
}

static int run(struct encoder *c, struct view bytes, bool end, struct err *e)
{
	switch (c->kind) {
	case ENCODER_GZIP:
		return run_gzip(c, bytes, end, e);
	case ENCODER_ZSTD:
		return run_zstd(c, bytes, end, e);
	default:
		return put(c, bytes, e);
	}
}

int encoder_new(int fd, enum encoder_kind kind, struct encoder **ret, struct err *e)
{
	osb_cleanup(encoder_freep) struct encoder *c = mem_new(struct encoder);

	c->fd = fd;
	sha256_init(&c->plain);
	sha256_init(&c->raw);
	c->out = mem_alloc(OUT_BYTES);
	if (kind == ENCODER_GZIP && deflateInit2(&c->gzip, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8,
						 Z_DEFAULT_STRATEGY) != Z_OK)
		return err_set(e, -ENOMEM, "no memory for gzip");
	c->kind = kind;
	if (kind == ENCODER_ZSTD) {
		c->zstd = ZSTD_createCStream();
		if (!c->zstd || ZSTD_isError(ZSTD_CCtx_setParameter(
					c->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)))
			return err_set(e, -ENOMEM, "no memory for zstd");
	}
	*ret = take_ptr(c);
	return 0;
}

void encoder_free(struct encoder *c)
{
	if (!c)
		return;
	if (c->kind == ENCODER_GZIP)
		(void)deflateEnd(&c->gzip);
	(void)ZSTD_freeCStream(c->zstd);
	free(c->out);
	free(c);
}

int encoder_write(struct encoder *c, struct view bytes, struct err *e)
{
	sha256_add(&c->plain, bytes);
	return run(c, bytes, /* end= */ false, e);
}

int encoder_finish(struct encoder *c, struct encoder_result *ret, struct err *e)
{
	int r = run(c, VIEW_NONE, /* end= */ true, e);

	if (r < 0)
		return r;
	sha256_done(&c->plain, ret->plain_sum);
	sha256_done(&c->raw, ret->raw_sum);
	ret->raw_bytes = c->raw_bytes;
	return 0;
}
