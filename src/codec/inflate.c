/*
 * codec/inflate.c - blocks, canonical Huffman codes, copies from what was written.
 */
#include "codec/inflate.h"

#include <errno.h>
#include <stdint.h>

#include "base/buf.h"

#define CODE_BITS      15
#define LENGTH_CODES   288
#define DISTANCE_CODES 30
#define END_OF_BLOCK   256
#define WINDOW	       32768
#define CODE_LEN_CODES 19

/* How many codes there are of each length, and the symbols in the order of their codes. */
struct huffman {
	uint16_t count[CODE_BITS + 1];
	uint16_t symbol[LENGTH_CODES];
};

struct reader {
	struct view in;
	uint32_t bits; /* read and not used, lowest first */
	unsigned bits_n;
	struct buf *out;
	size_t begin; /* length of `out` before us: copies reach no further back */
};

static int take_bits(struct reader *r, unsigned n)
{
	uint32_t v;

	while (r->bits_n < n) {
		if (r->in.len == 0)
			return -EINVAL;
		r->bits |= (uint32_t)(unsigned char)r->in.p[0] << r->bits_n;
		r->bits_n += 8;
		r->in = view_skip(r->in, 1);
	}
	v = r->bits & ((1u << n) - 1);
	r->bits >>= n;
	r->bits_n -= n;
	return (int)v;
}

/* Lengths of codes (0 = unused) become a table; -EINVAL when they are too many for their lengths.
 */
static int huffman_make(struct huffman *h, const uint8_t *lengths, size_t n)
{
	uint16_t at[CODE_BITS + 1];
	int left = 1;

	*h = (struct huffman){0};
	for (size_t i = 0; i < n; i++)
		h->count[lengths[i]]++;
	h->count[0] = 0;
	at[1] = 0;
	for (unsigned len = 1; len <= CODE_BITS; len++) {
		left = (left << 1) - h->count[len];
		if (left < 0)
			return -EINVAL;
		if (len < CODE_BITS)
			at[len + 1] = (uint16_t)(at[len] + h->count[len]);
	}
	for (size_t i = 0; i < n; i++)
		if (lengths[i] > 0)
			h->symbol[at[lengths[i]]++] = (uint16_t)i;
	return 0;
}

static int huffman_next(struct reader *r, const struct huffman *h)
{
	int code = 0, first = 0, index = 0;

	for (unsigned len = 1; len <= CODE_BITS; len++) {
		int bit = take_bits(r, 1);

		if (bit < 0)
			return bit;
		code |= bit;
		if (code - h->count[len] < first)
			return h->symbol[index + (code - first)];
		index += h->count[len];
		first = (first + h->count[len]) << 1;
		code <<= 1;
	}
	return -EINVAL;
}

static int copy_back(struct reader *r, size_t distance, size_t len)
{
	char *room;
	const char *from;

	if (distance > r->out->len - r->begin || distance > WINDOW)
		return -EINVAL;
	room = buf_reserve(r->out, len);
	if (!room)
		return -E2BIG;
	from = room - distance;
	/* What is copied may be what was just written: byte by byte. */
	for (size_t i = 0; i < len; i++)
		room[i] = from[i];
	buf_commit(r->out, len);
	return 0;
}

/* A length symbol and the distance behind it. */
static int take_copy(struct reader *r, int symbol, const struct huffman *distances)
{
	static const uint16_t length_base[] = {3,  4,  5,  6,	7,   8,	  9,   10,  11, 13,
					       15, 17, 19, 23,	27,  31,  35,  43,  51, 59,
					       67, 83, 99, 115, 131, 163, 195, 227, 258};
	static const uint8_t length_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
					      2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
	static const uint16_t distance_base[] = {1,    2,    3,	   4,	  5,	 7,    9,    13,
						 17,   25,   33,   49,	  65,	 97,   129,  193,
						 257,  385,  513,  769,	  1025,	 1537, 2049, 3073,
						 4097, 6145, 8193, 12289, 16385, 24577};
	int extra, code;
	size_t len;

	symbol -= END_OF_BLOCK + 1;
	if (symbol < 0 || (size_t)symbol >= ARRAY_LEN(length_base))
		return -EINVAL;
	extra = take_bits(r, length_bits[symbol]);
	if (extra < 0)
		return extra;
	len = (size_t)length_base[symbol] + (size_t)extra;
	code = huffman_next(r, distances);
	if (code < 0 || (size_t)code >= ARRAY_LEN(distance_base))
		return -EINVAL;
	extra = take_bits(r, code < 2 ? 0 : (unsigned)code / 2 - 1);
	if (extra < 0)
		return extra;
	return copy_back(r, (size_t)distance_base[code] + (size_t)extra, len);
}

static int coded_block(struct reader *r, const struct huffman *lengths,
		       const struct huffman *distances)
{
	for (;;) {
		int symbol = huffman_next(r, lengths);
		int failed = 0;

		if (symbol < 0 || symbol == END_OF_BLOCK)
			return symbol < 0 ? symbol : 0;
		if (symbol < END_OF_BLOCK)
			failed = buf_append_char(r->out, (char)symbol);
		else
			failed = take_copy(r, symbol, distances);
		if (failed < 0)
			return failed;
	}
}

static int stored_block(struct reader *r)
{
	const unsigned char *p = (const unsigned char *)r->in.p;
	size_t len;
	int failed;

	r->bits = r->bits_n = 0;
	if (r->in.len < 4)
		return -EINVAL;
	len = (size_t)p[0] | (size_t)p[1] << 8;
	if (len != (((size_t)p[2] | (size_t)p[3] << 8) ^ 0xffff) || r->in.len - 4 < len)
		return -EINVAL;
	failed = buf_append(r->out, r->in.p + 4, len);
	r->in = view_skip(r->in, 4 + len);
	return failed;
}

static int fixed_block(struct reader *r)
{
	struct huffman lengths, distances;
	uint8_t bits[LENGTH_CODES];

	for (size_t i = 0; i < LENGTH_CODES; i++)
		bits[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
	if (huffman_make(&lengths, bits, LENGTH_CODES) < 0)
		return -EINVAL;
	for (size_t i = 0; i < DISTANCE_CODES; i++)
		bits[i] = 5;
	if (huffman_make(&distances, bits, DISTANCE_CODES) < 0)
		return -EINVAL;
	return coded_block(r, &lengths, &distances);
}

/* One entry of the lengths: itself, or how often the one before or zero comes. */
static int take_lengths(struct reader *r, const struct huffman *codes, uint8_t *bits, size_t n)
{
	size_t i = 0;

	while (i < n) {
		int symbol = huffman_next(r, codes);
		uint8_t value = 0;
		int times;

		if (symbol < 0)
			return symbol;
		if (symbol < 16) {
			bits[i++] = (uint8_t)symbol;
			continue;
		}
		if (symbol == 16 && i == 0)
			return -EINVAL;
		if (symbol == 16)
			value = bits[i - 1];
		times = take_bits(r, symbol == 16 ? 2 : symbol == 17 ? 3 : 7);
		if (times < 0)
			return times;
		times += symbol == 18 ? 11 : 3;
		if (i + (size_t)times > n)
			return -EINVAL;
		while (times-- > 0)
			bits[i++] = value;
	}
	return 0;
}

static int dynamic_block(struct reader *r)
{
	static const uint8_t order[CODE_LEN_CODES] = {16, 17, 18, 0, 8,	 7, 9,	6, 10, 5,
						      11, 4,  12, 3, 13, 2, 14, 1, 15};
	uint8_t bits[LENGTH_CODES + DISTANCE_CODES + 2] = {0};
	struct huffman lengths, distances;
	int lengths_n = take_bits(r, 5), distances_n = take_bits(r, 5), codes_n = take_bits(r, 4);
	int failed;

	if (lengths_n < 0 || distances_n < 0 || codes_n < 0 || lengths_n + 257 > 286 ||
	    distances_n + 1 > DISTANCE_CODES)
		return -EINVAL;
	lengths_n += 257;
	distances_n += 1;
	for (int i = 0; i < codes_n + 4; i++) {
		int len = take_bits(r, 3);

		if (len < 0)
			return len;
		bits[order[i]] = (uint8_t)len;
	}
	if (huffman_make(&lengths, bits, CODE_LEN_CODES) < 0)
		return -EINVAL;
	failed = take_lengths(r, &lengths, bits, (size_t)lengths_n + (size_t)distances_n);
	if (failed < 0)
		return failed;
	if (huffman_make(&lengths, bits, (size_t)lengths_n) < 0 ||
	    huffman_make(&distances, bits + lengths_n, (size_t)distances_n) < 0)
		return -EINVAL;
	return coded_block(r, &lengths, &distances);
}

int inflate_all(struct view packed, struct buf *out)
{
	struct reader r = {.in = packed, .out = out, .begin = out->len};
	int last;

	do {
		int kind, failed;

		last = take_bits(&r, 1);
		kind = take_bits(&r, 2);
		if (last < 0 || kind < 0 || kind == 3)
			return -EINVAL;
		failed = kind == 0   ? stored_block(&r)
			 : kind == 1 ? fixed_block(&r)
				     : dynamic_block(&r);
		if (failed < 0)
			return failed;
	} while (!last);
	return 0;
}
