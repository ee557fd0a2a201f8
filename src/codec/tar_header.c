/*
 * codec/tar_header.c - fields at fixed places, numbers in octal or, if too large, in base 256.
 */
#include "codec/tar_header.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "codec/tar.h"

enum {
	NAME_AT = 0,
	MODE_AT = 100,
	UID_AT = 108,
	GID_AT = 116,
	SIZE_AT = 124,
	MTIME_AT = 136,
	SUM_AT = 148,
	KIND_AT = 156,
	TARGET_AT = 157,
	MAGIC_AT = 257,
	PREFIX_AT = 345,
	GNU_MAP_AT = 386,
	GNU_MORE_AT = 482,
	GNU_REAL_SIZE_AT = 483,
	STAR_MAGIC_AT = 508,
	MORE_MORE_AT = 504, /* in a block that holds nothing but pieces */
};

enum { NUMBER_BYTES = 12, PIECE_BYTES = 2 * NUMBER_BYTES };

bool tar_header_is_empty(const char *block)
{
	return block[0] == '\0' && memcmp(block, block + 1, TAR_BLOCK - 1) == 0;
}

/* Two's complement, big-endian, the highest bit of the first byte set as a mark. */
static int parse_binary(const unsigned char *p, size_t n, int64_t *ret)
{
	bool negative = p[0] & 0x40;
	uint64_t v = negative ? UINT64_MAX << 6 : 0;
	unsigned char filler = negative ? 0xff : 0;

	v |= p[0] & 0x3f;
	for (size_t i = 1; i < n; i++) {
		/* What is shifted out must not count. */
		if ((unsigned char)(v >> 56) != filler)
			return -EBADMSG;
		v = v << 8 | p[i];
	}
	if ((v >> 63 != 0) != negative)
		return -EBADMSG;
	*ret = (int64_t)v;
	return 0;
}

static int parse_octal(const char *p, size_t n, int64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;

	while (i < n && p[i] == ' ')
		i++;
	for (; i < n && p[i] >= '0' && p[i] <= '7'; i++) {
		if (v >> 60)
			return -EBADMSG;
		v = v << 3 | (uint64_t)(p[i] - '0');
	}
	for (; i < n; i++)
		if (p[i] != ' ' && p[i] != '\0')
			return -EBADMSG;
	*ret = (int64_t)v;
	return 0;
}

static int parse_number(const char *p, size_t n, int64_t *ret)
{
	if (*(const unsigned char *)p & 0x80)
		return parse_binary((const unsigned char *)p, n, ret);
	return parse_octal(p, n, ret);
}

static int parse_unsigned(const char *p, size_t n, uint64_t *ret)
{
	int64_t v;
	int r = parse_number(p, n, &v);

	if (r < 0 || v < 0)
		return -EBADMSG;
	*ret = (uint64_t)v;
	return 0;
}

/* Some old programs have added up signed bytes. */
static bool sum_is_right(const char *block)
{
	int64_t want, plain = 0, with_sign = 0;

	if (parse_octal(block + SUM_AT, 8, &want) < 0)
		return false;
	for (size_t i = 0; i < TAR_BLOCK; i++) {
		char c = i >= SUM_AT && i < KIND_AT ? ' ' : block[i];

		plain += (unsigned char)c;
		with_sign += (signed char)c;
	}
	return want == plain || want == with_sign;
}

static size_t text_len(const char *p, size_t max)
{
	return strnlen(p, max);
}

/* Only what calls itself ustar has a prefix there; star has times behind a shorter one. */
static void join_path(const char *block, char ret[TAR_HEADER_PATH_MAX + 1])
{
	size_t prefix_max = memcmp(block + STAR_MAGIC_AT, "tar", 4) == 0 ? 131 : 155;
	size_t n = 0, name = text_len(block + NAME_AT, 100);

	if (memcmp(block + MAGIC_AT, "ustar", 6) == 0)
		n = text_len(block + PREFIX_AT, prefix_max);
	if (n > 0) {
		memcpy(ret, block + PREFIX_AT, n);
		ret[n++] = '/';
	}
	memcpy(ret + n, block + NAME_AT, name);
	ret[n + name] = '\0';
}

/* Pieces end with the first that has no number. */
static int parse_pieces(const char *p, size_t max, struct tar_piece *ret, size_t *ret_n)
{
	size_t n = 0;

	for (; n < max && p[n * PIECE_BYTES + NUMBER_BYTES] != '\0'; n++) {
		const char *at = p + n * PIECE_BYTES;

		if (parse_unsigned(at, NUMBER_BYTES, &ret[n].at) < 0 ||
		    parse_unsigned(at + NUMBER_BYTES, NUMBER_BYTES, &ret[n].len) < 0)
			return -EBADMSG;
	}
	*ret_n = n;
	return 0;
}

static int parse_sparse(const char *block, struct tar_header *ret)
{
	ret->more_pieces = block[GNU_MORE_AT] != '\0';
	if (parse_unsigned(block + GNU_REAL_SIZE_AT, NUMBER_BYTES, &ret->real_size) < 0)
		return -EBADMSG;
	return parse_pieces(block + GNU_MAP_AT, TAR_HEADER_GNU_MAP, ret->pieces, &ret->pieces_n);
}

int tar_header_parse(const char *block, struct tar_header *ret, struct err *e)
{
	struct tar_header h = {.kind = block[KIND_AT]};
	uint64_t mode;

	if (!sum_is_right(block))
		return err_set(e, -EBADMSG, "this is no tar archive, or a damaged one");
	if (parse_unsigned(block + MODE_AT, 8, &mode) < 0 ||
	    parse_unsigned(block + UID_AT, 8, &h.uid) < 0 ||
	    parse_unsigned(block + GID_AT, 8, &h.gid) < 0 ||
	    parse_unsigned(block + SIZE_AT, NUMBER_BYTES, &h.size) < 0 ||
	    parse_number(block + MTIME_AT, NUMBER_BYTES, &h.mtime_s) < 0 ||
	    (h.kind == 'S' && parse_sparse(block, &h) < 0))
		return err_set(e, -EBADMSG, "a header of the tar archive has a bad number");
	h.mode = (uint32_t)(mode & 07777);
	join_path(block, h.path);
	memcpy(h.target, block + TARGET_AT, text_len(block + TARGET_AT, 100));
	*ret = h;
	return 0;
}

int tar_header_more_pieces(const char *block, struct tar_piece *ret, size_t *ret_n, bool *ret_more,
			   struct err *e)
{
	if (parse_pieces(block, TAR_HEADER_MORE_MAP, ret, ret_n) < 0)
		return err_set(e, -EBADMSG, "a sparse file of the tar archive has a bad map");
	*ret_more = block[MORE_MORE_AT] != '\0';
	return 0;
}
