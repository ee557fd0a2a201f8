/*
 * codec/sha256.h - SHA-256 (FIPS 180-4), at once or piece by piece, and HMAC over it (RFC 2104).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/view.h"

#define SHA256_BYTES 32

struct sha256 {
	uint32_t h[8];
	uint64_t bytes;		 /* fed so far */
	unsigned char block[64]; /* the unfinished one */
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, struct view text);
void sha256_done(struct sha256 *s, unsigned char ret[SHA256_BYTES]);

void sha256_of(struct view text, unsigned char ret[SHA256_BYTES]);
void sha256_hmac(struct view key, struct view text, unsigned char ret[SHA256_BYTES]);
