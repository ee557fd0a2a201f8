/*
 * codec/sha256.c - SHA-256 (FIPS 180-4) and HMAC over it (RFC 2104).
 */
#include "codec/sha256.h"

#include "base/bytes.h"
#include "codec/sha256_cpu.h"

#define BLOCK sizeof(((struct sha256 *)0)->block)

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static uint32_t load_be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void schedule(const unsigned char *block, uint32_t w[64])
{
	for (int i = 0; i < 16; i++)
		w[i] = load_be32(block + 4 * i);
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + w[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
		       (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
	}
}

static void compress(uint32_t h[8], const unsigned char *block)
{
	uint32_t w[64], v[8];

	schedule(block, w);
	memcpy(v, h, sizeof(v));
	for (int i = 0; i < 64; i++) {
		uint32_t a = v[0], e = v[4], t1, t2;

		t1 = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
		     ((e & v[5]) ^ (~e & v[6])) + constants[i] + w[i];
		t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
		     ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (int i = 0; i < 8; i++)
		h[i] += v[i];
}

static void compress_all(uint32_t h[8], const unsigned char *blocks, size_t n)
{
	static int cpu = -1; /* asked once; whoever asks at the same time gets the same answer */
	int can = __atomic_load_n(&cpu, __ATOMIC_RELAXED);

	if (can < 0) {
		can = sha256_cpu_can();
		__atomic_store_n(&cpu, can, __ATOMIC_RELAXED);
	}
	if (can)
		sha256_cpu_add(h, blocks, n, constants);
	else
		for (; n > 0; n--, blocks += BLOCK)
			compress(h, blocks);
}

void sha256_init(struct sha256 *s)
{
	static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

	memcpy(s->h, start, sizeof(start));
	s->bytes = 0;
}

void sha256_add(struct sha256 *s, struct view text)
{
	while (text.len > 0) {
		size_t at = s->bytes % BLOCK;
		size_t n = MIN(text.len, BLOCK - at);

		if (n == BLOCK) {
			n = text.len - text.len % BLOCK;
			compress_all(s->h, (const unsigned char *)text.p, n / BLOCK);
		} else {
			memcpy(s->block + at, text.p, n);
			if (at + n == BLOCK)
				compress_all(s->h, s->block, 1);
		}
		s->bytes += n;
		text = view_skip(text, n);
	}
}

void sha256_done(struct sha256 *s, unsigned char ret[SHA256_BYTES])
{
	static const unsigned char padding[BLOCK] = {0x80};
	uint64_t bits = s->bytes * 8;
	size_t at = s->bytes % BLOCK;
	unsigned char length[8];

	bytes_put_be64(length, bits);
	sha256_add(s, view_mem(padding, (at < BLOCK - 8 ? BLOCK - 8 : 2 * BLOCK - 8) - at));
	sha256_add(s, view_mem(length, sizeof(length)));
	for (int i = 0; i < SHA256_BYTES; i++)
		ret[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_of(struct view text, unsigned char ret[SHA256_BYTES])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, text);
	sha256_done(&s, ret);
}

void sha256_hmac(struct view key, struct view text, unsigned char ret[SHA256_BYTES])
{
	unsigned char inner[BLOCK] = {0}, outer[BLOCK];
	struct sha256 s;

	if (key.len > BLOCK)
		sha256_of(key, inner);
	else if (key.len > 0)
		memcpy(inner, key.p, key.len);
	for (size_t i = 0; i < BLOCK; i++) {
		outer[i] = inner[i] ^ 0x5c;
		inner[i] ^= 0x36;
	}

	sha256_init(&s);
	sha256_add(&s, view_mem(inner, BLOCK));
	sha256_add(&s, text);
	sha256_done(&s, ret);

	sha256_init(&s);
	sha256_add(&s, view_mem(outer, BLOCK));
	sha256_add(&s, view_mem(ret, SHA256_BYTES));
	sha256_done(&s, ret);
}
