/*
 * image/pipeline.h - decompress, hash, use: three threads and a few buffers between them.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/sha256.h"

struct err;

/* What is to be read. */
struct pipeline_source {
	int fd; /* borrowed */
	uint64_t at, len;
	uint64_t max_bytes; /* decompressed; more is -EFBIG */
};

struct pipeline_result {
	unsigned char raw_sum[SHA256_BYTES];   /* of the file's bytes */
	unsigned char plain_sum[SHA256_BYTES]; /* of the decompressed ones */
	uint64_t plain_bytes;
};

/* Gets all decompressed bytes in order, in the caller's thread.  -errno with a sentence stops. */
typedef int pipeline_fn(void *arg, struct view bytes, struct err *e);

osb_must_check int pipeline_run(const struct pipeline_source *s, pipeline_fn *fn, void *arg,
				struct pipeline_result *ret, struct err *e);
