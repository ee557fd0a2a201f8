/*
 * image/encoder.h - bytes on their way into a file: hashed, compressed, hashed again.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/sha256.h"

struct encoder;
struct err;

enum encoder_kind { ENCODER_PLAIN, ENCODER_GZIP, ENCODER_ZSTD };

struct encoder_result {
	unsigned char plain_sum[SHA256_BYTES], raw_sum[SHA256_BYTES];
	uint64_t raw_bytes;
};

/* `fd` (borrowed) is written from where it stands. */
osb_must_check int encoder_new(int fd, enum encoder_kind kind, struct encoder **ret, struct err *e);
void encoder_free(struct encoder *c); /* accepts NULL */
DEFINE_CLEANUP(struct encoder *, encoder_free)

osb_must_check int encoder_write(struct encoder *c, struct view bytes, struct err *e);
osb_must_check int encoder_finish(struct encoder *c, struct encoder_result *ret, struct err *e);
