/*
 * codec/sha256_cpu.c - the SHA extensions of x86: two rounds an instruction.
 *
 * Images are hashed byte by byte, some of them twice: this is several times as fast as plain code.
 */
#include "codec/sha256_cpu.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#define SHA_BIT (1u << 29) /* of leaf 7 */

#define with_sha __attribute__((target("sha,sse4.1,ssse3")))

bool sha256_cpu_can(void)
{
	unsigned a, b, c, d, leaf7 = 0;

	if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
		leaf7 = b;
	if (!(leaf7 & SHA_BIT) || !__get_cpuid(1, &a, &b, &c, &d))
		return false;
	return (c & bit_SSSE3) && (c & bit_SSE4_1);
}

/* The words of the next four rounds, from those of the sixteen before: m[0] becomes them. */
static inline with_sha __m128i schedule(const __m128i m[4])
{
	__m128i sum = _mm_sha256msg1_epu32(m[0], m[1]);

	sum = _mm_add_epi32(sum, _mm_alignr_epi8(m[3], m[2], 4));
	return _mm_sha256msg2_epu32(sum, m[3]);
}

static inline with_sha void add_block(__m128i state[2], const unsigned char *block,
				      const uint32_t constants[64])
{
	const __m128i to_big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i abef = state[0], cdgh = state[1], m[4];

#pragma GCC unroll 16
	for (int i = 0; i < 16; i++) {
		__m128i words;

		if (i < 4) {
			words = _mm_loadu_si128((const __m128i *)(const void *)(block + 16 * i));
			words = _mm_shuffle_epi8(words, to_big_endian);
			m[i] = words;
		} else {
			words = schedule(m);
			m[0] = m[1];
			m[1] = m[2];
			m[2] = m[3];
			m[3] = words;
		}
		words = _mm_add_epi32(
			words, _mm_loadu_si128((const __m128i *)(const void *)(constants + 4 * i)));
		cdgh = _mm_sha256rnds2_epu32(cdgh, abef, words);
		abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(words, 0x0e));
	}
	state[0] = _mm_add_epi32(state[0], abef);
	state[1] = _mm_add_epi32(state[1], cdgh);
}

/* The instructions want the eight words of the state in another order: a, b, e, f and c, d, g, h,
 * each group backwards. */
with_sha void sha256_cpu_add(uint32_t h[8], const unsigned char *blocks, size_t n,
			     const uint32_t constants[64])
{
	__m128i *at = (__m128i *)(void *)h, state[2];
	__m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(at), 0xb1);
	__m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(at + 1), 0x1b);

	state[0] = _mm_alignr_epi8(badc, hgfe, 8);
	state[1] = _mm_blend_epi16(hgfe, badc, 0xf0);
	for (; n > 0; n--, blocks += 64)
		add_block(state, blocks, constants);
	badc = _mm_shuffle_epi32(state[0], 0x1b);
	hgfe = _mm_shuffle_epi32(state[1], 0xb1);
	_mm_storeu_si128(at, _mm_blend_epi16(badc, hgfe, 0xf0));
	_mm_storeu_si128(at + 1, _mm_alignr_epi8(hgfe, badc, 8));
}

#else

bool sha256_cpu_can(void)
{
	return false;
}

void sha256_cpu_add(uint32_t h[8], const unsigned char *blocks, size_t n,
		    const uint32_t constants[64])
{
	(void)h;
	(void)blocks;
	(void)n;
	(void)constants;
}

#endif
