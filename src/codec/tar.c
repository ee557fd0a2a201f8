/*
 * codec/tar.c - tar headers.
 */
#include "codec/tar.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

#define NAME_BYTES 100
#define OCTAL_7	   UINT64_C(07777777)
#define OCTAL_11   UINT64_C(077777777777)
#define PAX_MAX	   (128 * 1024)

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], kind;
	char target[100], magic[6], version[2], owner[32], group[32], major[8], minor[8],
		prefix[155];
	char unused[12];
};

_Static_assert(sizeof(struct header) == TAR_BLOCK, "a tar header is one block");

/* Digits up to the last byte, which stays NUL; a number that does not fit is told by pax. */
static void put_octal(char *field, size_t size, uint64_t n)
{
	for (size_t i = size - 1; i-- > 0; n >>= 3)
		field[i] = (char)('0' + (n & 7));
}

static void put_text(char *field, size_t size, struct view text)
{
	if (text.len > 0)
		memcpy(field, text.p, text.len < size ? text.len : size);
}

static int put_block(struct buf *out, struct header *h)
{
	unsigned sum = 0;

	memcpy(h->magic, "ustar", 6);
	memcpy(h->version, "00", 2);
	memset(h->checksum, ' ', sizeof(h->checksum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += ((const unsigned char *)h)[i];
	put_octal(h->checksum, 7, sum);
	return buf_append(out, h, sizeof(*h));
}

/* "LEN key=value\n", where LEN counts its own digits too. */
static int put_record(struct buf *pax, const char *key, struct view value)
{
	size_t rest = strlen(key) + value.len + 3; /* ' ', '=', '\n' */
	size_t len = rest + 1;
	char digits[24];
	int r;

	while ((size_t)snprintf(digits, sizeof(digits), "%zu", len) + rest != len)
		len++;
	r = buf_printf(pax, "%zu %s=", len, key);
	if (r == 0)
		r = buf_append_view(pax, value);
	return r == 0 ? buf_append_char(pax, '\n') : r;
}

static int put_xattr_record(struct buf *pax, const struct tar_xattr *x)
{
	char key[sizeof("SCHILY.xattr.") + 255];

	if (x->name.len > 255)
		return -E2BIG;
	snprintf(key, sizeof(key), "SCHILY.xattr." VIEW_FMT, VIEW_ARG(x->name));
	return put_record(pax, key, x->value);
}

static int put_number_record(struct buf *pax, const char *key, uint64_t n, uint64_t fits)
{
	char digits[24];

	if (n <= fits)
		return 0;
	snprintf(digits, sizeof(digits), "%" PRIu64, n);
	return put_record(pax, key, view_of(digits));
}

static int put_pax(struct buf *out, const struct tar_entry *t)
{
	osb_cleanup(buf_done) struct buf pax = BUF_INIT(PAX_MAX);
	struct header h = {.kind = 'x'};
	int r = 0;

	if (t->path.len > NAME_BYTES)
		r = put_record(&pax, "path", t->path);
	if (r == 0 && t->target.len > NAME_BYTES)
		r = put_record(&pax, "linkpath", t->target);
	if (r == 0)
		r = put_number_record(&pax, "uid", t->uid, OCTAL_7);
	if (r == 0)
		r = put_number_record(&pax, "gid", t->gid, OCTAL_7);
	if (r == 0)
		r = put_number_record(&pax, "size", t->size, OCTAL_11);
	for (size_t i = 0; r == 0 && i < t->xattrs_n; i++)
		r = put_xattr_record(&pax, &t->xattrs[i]);
	if (r < 0 || pax.len == 0)
		return r;
	memcpy(h.name, "PaxHeaders/entry", sizeof("PaxHeaders/entry"));
	put_octal(h.mode, sizeof(h.mode), 0644);
	put_octal(h.uid, sizeof(h.uid), 0);
	put_octal(h.gid, sizeof(h.gid), 0);
	put_octal(h.size, sizeof(h.size), pax.len);
	put_octal(h.mtime, sizeof(h.mtime), 0);
	r = put_block(out, &h);
	if (r == 0)
		r = buf_append_view(out, buf_view(&pax));
	return r == 0 ? tar_put_padding(out, pax.len) : r;
}

int tar_put_header(struct buf *out, const struct tar_entry *t)
{
	struct header h = {.kind = (char)t->kind};
	size_t before = out->len;
	int r = put_pax(out, t);

	put_text(h.name, sizeof(h.name), t->path);
	put_text(h.target, sizeof(h.target), t->target);
	put_octal(h.mode, sizeof(h.mode), t->mode & 07777);
	put_octal(h.uid, sizeof(h.uid), t->uid <= OCTAL_7 ? t->uid : 0);
	put_octal(h.gid, sizeof(h.gid), t->gid <= OCTAL_7 ? t->gid : 0);
	put_octal(h.size, sizeof(h.size), t->size <= OCTAL_11 ? t->size : 0);
	put_octal(h.mtime, sizeof(h.mtime), t->mtime_s > 0 ? (uint64_t)t->mtime_s : 0);
	put_octal(h.major, sizeof(h.major), t->major);
	put_octal(h.minor, sizeof(h.minor), t->minor);
	if (r == 0)
		r = put_block(out, &h);
	if (r < 0)
		buf_truncate(out, before);
	return r;
}

int tar_put_padding(struct buf *out, uint64_t size)
{
	static const char zeros[TAR_BLOCK];

	return buf_append(out, zeros, (size_t)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK));
}

int tar_put_end(struct buf *out)
{
	static const char zeros[2 * TAR_BLOCK];

	return buf_append(out, zeros, sizeof(zeros));
}
