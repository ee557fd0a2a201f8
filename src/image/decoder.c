/*
 * image/decoder.c - zlib and zstd behind one face.
 */
#include "image/decoder.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/view.h"
#include "codec/sha256.h"

#define INPUT_BYTES (256 * 1024)
#define GZIP_WINDOW (15 + 16) /* the largest, with gzip's framing */

struct decoder {
	int fd;
	uint64_t at, left; /* of the file */
	struct sha256 *sum;
	char *input;
	struct view unread; /* of the input */
	enum decoder_kind kind;
	z_stream gzip;
	ZSTD_DStream *zstd;
	bool between; /* frames: here the end may be */
	const struct decoder_ops *ops;
};

struct decoder_ops {
	int (*begin)(struct decoder *d, struct err *e);
	/* Some of the unread input into `out`; how much of it. */
	int (*run)(struct decoder *d, char *out, size_t size, size_t *ret_n, struct err *e);
};

static int refill(struct decoder *d, struct err *e)
{
	size_t want = d->left < INPUT_BYTES ? (size_t)d->left : INPUT_BYTES;
	ssize_t n;

	if (d->unread.len > 0 || want == 0)
		return 0;
	do
		n = pread(d->fd, d->input, want, (off_t)d->at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_set(e, -errno, "read an archive: %m");
	if (n == 0)
		return err_set(e, -EBADMSG, "the archive is cut off");
	d->unread = view_mem(d->input, (size_t)n);
	d->at += (uint64_t)n;
	d->left -= (uint64_t)n;
	if (d->sum)
		sha256_add(d->sum, d->unread);
	return 0;
}

/* ---- as it is ---- */

static int plain_begin(struct decoder *d, struct err *e)
{
	(void)e;
	d->between = true;
	return 0;
}

static int plain_run(struct decoder *d, char *out, size_t size, size_t *ret_n, struct err *e)
{
	size_t n = MIN(size, d->unread.len);

	(void)e;
	memcpy(out, d->unread.p, n);
	d->unread = view_skip(d->unread, n);
	*ret_n = n;
	return 0;
}

/* ---- gzip ---- */

static int gzip_begin(struct decoder *d, struct err *e)
{
	if (inflateInit2(&d->gzip, GZIP_WINDOW) != Z_OK)
		return err_set(e, -ENOMEM, "no memory for gzip");
	return 0;
}

/* Several of them in a row are one; some tools fill up with zeros behind. */
static int gzip_next(struct decoder *d, struct err *e)
{
	size_t zeros = 0;

	while (zeros < d->unread.len && d->unread.p[zeros] == '\0')
		zeros++;
	d->unread = view_skip(d->unread, zeros);
	if (d->unread.len == 0)
		return 0;
	d->between = false;
	if (inflateReset(&d->gzip) != Z_OK)
		return err_set(e, -EBADMSG, "the gzip data is damaged");
	return 0;
}

static int gzip_run(struct decoder *d, char *out, size_t size, size_t *ret_n, struct err *e)
{
	int r = d->between ? gzip_next(d, e) : 0;

	*ret_n = 0;
	if (r < 0 || d->unread.len == 0)
		return r;
	d->gzip.next_in = (Bytef *)(uintptr_t)d->unread.p;
	d->gzip.avail_in = (uInt)d->unread.len;
	d->gzip.next_out = (Bytef *)out;
	d->gzip.avail_out = (uInt)size;
	r = inflate(&d->gzip, Z_NO_FLUSH);
	if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
		return err_set(e, -EBADMSG, "the gzip data is damaged: %s",
			       d->gzip.msg ? d->gzip.msg : "no reason known");
	d->unread = view_skip(d->unread, d->unread.len - d->gzip.avail_in);
	d->between = r == Z_STREAM_END;
	*ret_n = size - d->gzip.avail_out;
	return 0;
}

/* ---- zstd ---- */

static int zstd_begin(struct decoder *d, struct err *e)
{
	d->zstd = ZSTD_createDStream();
	if (!d->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(d->zstd, ZSTD_d_windowLogMax,
							    DECODER_WINDOW_LOG_MAX)))
		return err_set(e, -ENOMEM, "no memory for zstd");
	return 0;
}

static int zstd_run(struct decoder *d, char *out, size_t size, size_t *ret_n, struct err *e)
{
	ZSTD_inBuffer in = {d->unread.p, d->unread.len, 0};
	ZSTD_outBuffer to = {out, size, 0};
	size_t r = ZSTD_decompressStream(d->zstd, &to, &in);

	if (ZSTD_isError(r) && ZSTD_getErrorCode(r) == ZSTD_error_frameParameter_windowTooLarge)
		return err_set(e, -EOPNOTSUPP,
			       "the zstd data needs more than %d MiB of memory to read",
			       1 << (DECODER_WINDOW_LOG_MAX - 20));
	if (ZSTD_isError(r))
		return err_set(e, -EBADMSG, "the zstd data is damaged: %s", ZSTD_getErrorName(r));
	d->unread = view_skip(d->unread, in.pos);
	d->between = r == 0;
	*ret_n = to.pos;
	return 0;
}

static const struct decoder_ops all_ops[] = {
	[DECODER_PLAIN] = {plain_begin, plain_run},
	[DECODER_GZIP] = {gzip_begin, gzip_run},
	[DECODER_ZSTD] = {zstd_begin, zstd_run},
};

/* A zstd file may begin with a frame that is to be skipped. */
static int recognise(const char *p, size_t n, enum decoder_kind *ret, struct err *e)
{
	struct view v = view_mem(p, n);

	*ret = DECODER_PLAIN;
	if (view_starts(v, VIEW("\x1f\x8b")))
		*ret = DECODER_GZIP;
	else if (view_starts(v, VIEW("\x28\xb5\x2f\xfd")) ||
		 (n >= 4 && (p[0] & 0xf0) == 0x50 && memcmp(p + 1, "\x2a\x4d\x18", 3) == 0))
		*ret = DECODER_ZSTD;
	else if (view_starts(v, VIEW("\xfd"
				     "7zXZ")) ||
		 view_starts(v, VIEW("BZh")))
		return err_set(e, -EOPNOTSUPP, "archives must be compressed with gzip or zstd");
	return 0;
}

int decoder_new(int fd, uint64_t at, uint64_t len, struct sha256 *sum, struct decoder **ret,
		struct err *e)
{
	osb_cleanup(decoder_freep) struct decoder *d = mem_new(struct decoder);
	int r;

	d->fd = fd;
	d->at = at;
	d->left = len;
	d->sum = sum;
	d->input = mem_alloc(INPUT_BYTES);
	r = refill(d, e);
	if (r == 0)
		r = recognise(d->unread.p, d->unread.len, &d->kind, e);
	if (r < 0)
		return r;
	d->ops = &all_ops[d->kind];
	r = d->ops->begin(d, e);
	if (r < 0)
		return r;
	*ret = take_ptr(d);
	return 0;
}

void decoder_free(struct decoder *d)
{
	if (!d)
		return;
	if (d->kind == DECODER_GZIP)
		(void)inflateEnd(&d->gzip);
	(void)ZSTD_freeDStream(d->zstd);
	free(d->input);
	free(d);
}

enum decoder_kind decoder_kind(const struct decoder *d)
{
	return d->kind;
}

int decoder_read(struct decoder *d, char *out, size_t size, size_t *ret_n, struct err *e)
{
	size_t n = 0;

	while (n < size) {
		size_t got = 0, before;
		int r = refill(d, e);

		if (r < 0)
			return r;
		before = d->unread.len;
		if (before == 0 && d->between)
			break;
		r = d->ops->run(d, out + n, size - n, &got, e);
		if (r < 0)
			return r;
		n += got;
		/* Nothing comes out and nothing goes in. */
		if (got == 0 && d->unread.len == before)
			return err_set(e, -EBADMSG, "the compressed data is cut off");
	}
	*ret_n = n;
	return 0;
}
