/*
 * codec/java_keystore.c - see java_keystore.h.
 *
 * A JKS ends with a SHA-1 over the password, a phrase and everything before; the entries in it are
 * not read, only counted.  Of a PKCS #12 without a password the outermost shells are opened, and
 * the certificate is put behind what lies in them.
 */
#include "codec/java_keystore.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "codec/sha1.h"

/* ---- JKS ---- */

#define JKS_HEAD  12
#define JKS_COUNT 8 /* where the number of entries is */

/* "changeit" as UTF-16, and what Java has always put behind it. */
static const char salt[] = "\0c\0h\0a\0n\0g\0e\0i\0t"
			   "Mighty Aphrodite";

static int put_number(struct buf *out, size_t bytes, uint64_t n)
{
	int r = 0;

	while (r == 0 && bytes-- > 0)
		r = buf_append_char(out, (char)(n >> (8 * bytes)));
	return r;
}

static uint32_t get_number(const char *p)
{
	uint32_t n = 0;

	for (int i = 0; i < 4; i++)
		n = n << 8 | (unsigned char)p[i];
	return n;
}

static int put_text(struct buf *out, struct view text)
{
	int r = put_number(out, 2, text.len);

	return r < 0 ? r : buf_append_view(out, text);
}

/* The digest of what is in `out` behind the salt at its front. */
static void digest(const struct buf *out, unsigned char ret[SHA1_BYTES])
{
	sha1(buf_view(out), ret);
}

static int put_entry(struct buf *out, struct view der, const char *alias, uint64_t now_ms)
{
	int r = put_number(out, 4, 2); /* a certificate that is trusted */

	if (r == 0)
		r = put_text(out, view_of(alias));
	if (r == 0)
		r = put_number(out, 8, now_ms);
	if (r == 0)
		r = put_text(out, VIEW("X.509"));
	if (r == 0)
		r = put_number(out, 4, der.len);
	return r < 0 ? r : buf_append_view(out, der);
}

static int check_jks(struct view body, struct view sum, size_t max)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(max + sizeof(salt));
	unsigned char found[SHA1_BYTES];

	if (buf_append(&text, salt, sizeof(salt) - 1) < 0 || buf_append_view(&text, body) < 0)
		return -E2BIG;
	digest(&text, found);
	return memcmp(found, sum.p, SHA1_BYTES) == 0 ? 0 : -EINVAL;
}

static int add_to_jks(struct view store, struct view der, const char *alias, uint64_t now_ms,
		      struct buf *out)
{
	struct view body = view_first(store, store.len - SHA1_BYTES);
	osb_cleanup(buf_done) struct buf text = BUF_INIT(out->max + sizeof(salt));
	unsigned char sum[SHA1_BYTES];
	uint32_t count = get_number(store.p + JKS_COUNT);
	int r = check_jks(body, view_skip(store, body.len), out->max);

	if (r < 0 || get_number(store.p + 4) != 2 || count > 65536)
		return r < 0 ? r : -EINVAL;
	r = buf_append(&text, salt, sizeof(salt) - 1);
	if (r == 0)
		r = buf_append(&text, body.p, JKS_COUNT);
	if (r == 0)
		r = put_number(&text, 4, count + 1);
	if (r == 0)
		r = buf_append_view(&text, view_skip(body, JKS_HEAD));
	if (r == 0)
		r = put_entry(&text, der, alias, now_ms);
	if (r < 0)
		return r;
	digest(&text, sum);
	r = buf_append_view(out, view_skip(buf_view(&text), sizeof(salt) - 1));
	if (r == 0)
		r = buf_append(out, sum, sizeof(sum));
	return r < 0 ? r : 1;
}

/* ---- PKCS #12 ---- */

enum {
	INTEGER = 0x02,
	OCTETS = 0x04,
	OID = 0x06,
	BMP = 0x1e,
	SEQUENCE = 0x30,
	SET = 0x31,
	CONTEXT = 0xa0
};

static const struct view oid_data = {"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01", 9};
static const struct view oid_cert_bag = {"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x03", 11};
static const struct view oid_x509 = {"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x16\x01", 10};
static const struct view oid_friendly_name = {"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x14", 9};
static const struct view oid_trusted_usage = {"\x60\x86\x48\x01\x86\xf9\x66\xad\xca\x7b\x01\x01",
					      12};
static const struct view oid_any_usage = {"\x55\x1d\x25\x00", 4};

/* Cuts the first element off: its tag and content. */
static bool der_next(struct view *in, unsigned tag, struct view *ret)
{
	size_t len, n = 2;

	if (in->len < 2 || (unsigned char)in->p[0] != tag)
		return false;
	len = (unsigned char)in->p[1];
	if (len & 0x80) {
		size_t bytes = len & 0x7f;

		if (bytes == 0 || bytes > 4 || in->len < 2 + bytes)
			return false;
		len = 0;
		for (size_t i = 0; i < bytes; i++)
			len = len << 8 | (unsigned char)in->p[n++];
	}
	if (len > in->len - n)
		return false;
	*ret = (struct view){in->p + n, len};
	*in = view_skip(*in, n + len);
	return true;
}

static int der_put(struct buf *out, unsigned tag, struct view content)
{
	size_t bytes = content.len < 0x80      ? 0
		       : content.len < 0x100   ? 1
		       : content.len < 0x10000 ? 2
					       : 4;
	int r = buf_append_char(out, (char)tag);

	if (r == 0)
		r = bytes ? put_number(out, 1, 0x80 | bytes) : put_number(out, 1, content.len);
	if (r == 0 && bytes)
		r = put_number(out, bytes, content.len);
	return r < 0 ? r : buf_append_view(out, content);
}

/* The content becomes an element of that tag. */
static int der_wrap(struct buf *b, unsigned tag)
{
	struct buf whole = BUF_INIT(b->max);
	int r = der_put(&whole, tag, buf_view(b));

	buf_done(b);
	*b = whole;
	return r;
}

static int der_wrap_all(struct buf *b, const unsigned *tags, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = der_wrap(b, tags[i]);
	return r;
}

/* SEQUENCE { OID, what is in `b` wrapped in `tags` } */
static int der_named(struct buf *b, struct view oid, const unsigned *tags, size_t n)
{
	struct buf whole = BUF_INIT(b->max);
	int r = der_wrap_all(b, tags, n);

	if (r == 0)
		r = der_put(&whole, OID, oid);
	if (r == 0)
		r = buf_append_view(&whole, buf_view(b));
	buf_done(b);
	*b = whole;
	return r < 0 ? r : der_wrap(b, SEQUENCE);
}

static int put_attributes(struct buf *out, const char *alias)
{
	static const unsigned in_set[] = {SET};
	osb_cleanup(buf_done) struct buf name = BUF_INIT(1024), usage = BUF_INIT(1024);
	osb_cleanup(buf_done) struct buf all = BUF_INIT(2048), wide = BUF_INIT(256);
	int r = 0;

	for (const char *p = alias; r == 0 && *p; p++)
		r = put_number(&wide, 2, (unsigned char)*p);
	if (r == 0)
		r = der_put(&name, BMP, buf_view(&wide));
	if (r == 0)
		r = der_named(&name, oid_friendly_name, in_set, ARRAY_LEN(in_set));
	if (r == 0)
		r = der_put(&usage, OID, oid_any_usage);
	if (r == 0)
		r = der_named(&usage, oid_trusted_usage, in_set, ARRAY_LEN(in_set));
	if (r == 0)
		r = buf_append_view(&all, buf_view(&name));
	if (r == 0)
		r = buf_append_view(&all, buf_view(&usage));
	return r < 0 ? r : der_put(out, SET, buf_view(&all));
}

/* ContentInfo { data, SafeContents { SafeBag { certBag, the certificate, attributes } } } */
static int put_safe(struct buf *out, struct view der, const char *alias)
{
	static const unsigned in_context[] = {CONTEXT};
	static const unsigned in_octets[] = {SEQUENCE, OCTETS, CONTEXT};
	osb_cleanup(buf_done) struct buf cert = BUF_INIT(out->max), bag = BUF_INIT(out->max);
	int r = der_put(&cert, OCTETS, der);

	if (r == 0)
		r = der_named(&cert, oid_x509, in_context, ARRAY_LEN(in_context));
	if (r == 0)
		r = der_wrap(&cert, CONTEXT);
	if (r == 0)
		r = der_put(&bag, OID, oid_cert_bag);
	if (r == 0)
		r = buf_append_view(&bag, buf_view(&cert));
	if (r == 0)
		r = put_attributes(&bag, alias);
	if (r == 0)
		r = der_wrap(&bag, SEQUENCE);
	if (r == 0)
		r = der_named(&bag, oid_data, in_octets, ARRAY_LEN(in_octets));
	return r < 0 ? r : buf_append_view(out, buf_view(&bag));
}

/* What is in the innermost shell that is opened here; false: there is a password, or no shell. */
static bool open_shells(struct view store, struct view *ret_version, struct view *ret_safes)
{
	struct view pfx, info, oid, context, octets;

	return der_next(&store, SEQUENCE, &pfx) && store.len == 0 &&
	       der_next(&pfx, INTEGER, ret_version) && view_is(*ret_version, "\x03") &&
	       der_next(&pfx, SEQUENCE, &info) && pfx.len == 0 && der_next(&info, OID, &oid) &&
	       view_eq(oid, oid_data) && der_next(&info, CONTEXT, &context) && info.len == 0 &&
	       der_next(&context, OCTETS, &octets) && context.len == 0 &&
	       der_next(&octets, SEQUENCE, ret_safes) && octets.len == 0;
}

static int add_to_pkcs12(struct view store, struct view der, const char *alias, struct buf *out)
{
	static const unsigned shells[] = {SEQUENCE, OCTETS, CONTEXT};
	osb_cleanup(buf_done) struct buf safes = BUF_INIT(out->max), pfx = BUF_INIT(out->max);
	struct view version, old;
	int r;

	if (!open_shells(store, &version, &old))
		return -EINVAL;
	r = buf_append_view(&safes, old);
	if (r == 0)
		r = put_safe(&safes, der, alias);
	if (r == 0)
		r = der_named(&safes, oid_data, shells, ARRAY_LEN(shells));
	if (r == 0)
		r = der_put(&pfx, INTEGER, version);
	if (r == 0)
		r = buf_append_view(&pfx, buf_view(&safes));
	if (r == 0)
		r = der_put(out, SEQUENCE, buf_view(&pfx));
	return r < 0 ? r : 1;
}

int java_keystore_add(struct view store, struct view der, const char *alias, uint64_t now_ms,
		      struct buf *out)
{
	if (der.len == 0 || strlen(alias) > 64)
		return -EINVAL;
	if (view_find_view(store, der) < store.len)
		return 0;
	if (store.len >= JKS_HEAD + SHA1_BYTES && get_number(store.p) == 0xfeedfeedu)
		return add_to_jks(store, der, alias, now_ms, out);
	return add_to_pkcs12(store, der, alias, out);
}
