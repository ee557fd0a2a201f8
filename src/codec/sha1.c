/*
 * codec/sha1.c - SHA-1 (FIPS 180-4) of a text that is there at once.
 */
#include "codec/sha1.h"

#include <stdint.h>

#include "base/bytes.h"

#define BLOCK 64

static uint32_t rotate(uint32_t x, int n)
{
	return x << n | x >> (32 - n);
}

static uint32_t load_be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The function and constant of each quarter of the 80 rounds. */
static uint32_t mix(int round, uint32_t b, uint32_t c, uint32_t d)
{
	if (round < 20)
		return ((b & c) | (~b & d)) + 0x5a827999;
	if (round < 40)
		return (b ^ c ^ d) + 0x6ed9eba1;
	if (round < 60)
		return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
	return (b ^ c ^ d) + 0xca62c1d6;
}

static void compress(uint32_t h[5], const unsigned char *block)
{
	uint32_t w[80], v[5];

	for (int i = 0; i < 16; i++)
		w[i] = load_be32(block + 4 * i);
	for (int i = 16; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	memcpy(v, h, sizeof(v));
	for (int i = 0; i < 80; i++) {
		uint32_t next = rotate(v[0], 5) + mix(i, v[1], v[2], v[3]) + v[4] + w[i];

		v[4] = v[3];
		v[3] = v[2];
		v[2] = rotate(v[1], 30);
		v[1] = v[0];
		v[0] = next;
	}
	for (int i = 0; i < 5; i++)
		h[i] += v[i];
}

void sha1(struct view text, unsigned char ret[SHA1_BYTES])
{
	uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
	unsigned char last[2 * BLOCK] = {0};
	uint64_t bits = (uint64_t)text.len * 8;
	size_t last_len;

	for (; text.len >= BLOCK; text = view_skip(text, BLOCK))
		compress(h, (const unsigned char *)text.p);

	if (text.len > 0)
		memcpy(last, text.p, text.len);
	last[text.len] = 0x80;
	last_len = text.len < BLOCK - 8 ? BLOCK : 2 * BLOCK;
	bytes_put_be64(last + last_len - 8, bits);
	for (size_t i = 0; i < last_len; i += BLOCK)
		compress(h, last + i);

	for (int i = 0; i < SHA1_BYTES; i++)
		ret[i] = (unsigned char)(h[i / 4] >> (24 - 8 * (i % 4)));
}
