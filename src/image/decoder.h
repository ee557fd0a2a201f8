/*
 * image/decoder.h - a part of a file, decompressed: gzip, zstd, or as it is.
 *
 * What it is, its first bytes say, not what it is called.  Memory is bounded: compressors that
 * looked back further than 32 MiB are refused.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

struct decoder;
struct err;
struct sha256;

#define DECODER_WINDOW_LOG_MAX 25 /* 32 MiB */

enum decoder_kind { DECODER_PLAIN, DECODER_GZIP, DECODER_ZSTD };

/* Bytes `at` to `at` + `len` of `fd` (borrowed).  `sum` (or NULL) sees them as they are read. */
osb_must_check int decoder_new(int fd, uint64_t at, uint64_t len, struct sha256 *sum,
			       struct decoder **ret, struct err *e);
void decoder_free(struct decoder *d); /* accepts NULL */
DEFINE_CLEANUP(struct decoder *, decoder_free)

enum decoder_kind decoder_kind(const struct decoder *d);

/*
 * Fills `out` as far as there is something: less than `size` only at the end.  -EBADMSG: damaged or
 * cut off.
 */
osb_must_check int decoder_read(struct decoder *d, char *out, size_t size, size_t *ret_n,
				struct err *e);
