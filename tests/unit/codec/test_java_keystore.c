/*
 * Keystores of Java, made by hand as keytool makes them, before and after a certificate came.
 */
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "codec/java_keystore.h"
#include "codec/sha1.h"

#define SALT                                                                                       \
	"\0c\0h\0a\0n\0g\0e\0i\0t"                                                                 \
	"Mighty Aphrodite"

static void put(struct buf *b, struct view v)
{
	assert_int_equal(buf_append_view(b, v), 0);
}

/* What the digest at the end of a JKS must be. */
static void sum_of(struct view body, const char *salt, size_t salt_len,
		   unsigned char ret[SHA1_BYTES])
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(4096);

	put(&text, view_mem(salt, salt_len));
	put(&text, body);
	sha1(buf_view(&text), ret);
}

static void make_jks(struct buf *out, struct view body, const char *salt, size_t salt_len)
{
	unsigned char sum[SHA1_BYTES];

	sum_of(body, salt, salt_len, sum);
	put(out, body);
	put(out, view_mem(sum, sizeof(sum)));
}

#define EMPTY VIEW("\xfe\xed\xfe\xed\0\0\0\2\0\0\0\0")

static void a_jks_takes_a_certificate_once(void **state)
{
	osb_cleanup(buf_done) struct buf old = BUF_INIT(4096), made = BUF_INIT(4096);
	osb_cleanup(buf_done) struct buf again = BUF_INIT(4096);
	static const char expected[] = "\xfe\xed\xfe\xed\0\0\0\2\0\0\0\1"
				       "\0\0\0\2"
				       "\0\5alias"
				       "\0\0\1\x8b\xcf\xe5\x68\0"
				       "\0\5X.509"
				       "\0\0\0\3DER";
	struct view body = view_mem(expected, sizeof(expected) - 1);
	unsigned char sum[SHA1_BYTES];

	make_jks(&old, EMPTY, SALT, sizeof(SALT) - 1);
	assert_int_equal(
		java_keystore_add(buf_view(&old), VIEW("DER"), "alias", 1700000000000, &made), 1);
	assert_int_equal(made.len, body.len + SHA1_BYTES);
	assert_memory_equal(buf_view(&made).p, body.p, body.len);
	sum_of(body, SALT, sizeof(SALT) - 1, sum);
	assert_memory_equal(buf_view(&made).p + body.len, sum, SHA1_BYTES);
	assert_int_equal(java_keystore_add(buf_view(&made), VIEW("DER"), "alias", 1, &again), 0);
}

/* SEQUENCE { 3, SEQUENCE { data, [0] { OCTETS { SEQUENCE { } } } } } */
#define P12                                                                                        \
	"\x30\x16\x02\x01\x03\x30\x11\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01\xa0\x04\x04\x02" \
	"\x30\0"

static void a_pkcs12_takes_a_certificate_once(void **state)
{
	osb_cleanup(buf_done) struct buf made = BUF_INIT(4096), again = BUF_INIT(4096);
	struct view v;

	assert_int_equal(java_keystore_add(VIEW(P12), VIEW("DER"), "ab", 1, &made), 1);
	v = buf_view(&made);
	assert_int_equal((unsigned char)v.p[0], 0x30);
	assert_int_equal((size_t)(unsigned char)v.p[1] + 2, v.len);
	assert_true(view_find_view(v, VIEW("\x04\x03"
					   "DER")) < v.len);
	assert_true(view_find_view(v, VIEW("\x1e\x04\0a\0b")) < v.len);
	assert_int_equal(java_keystore_add(v, VIEW("DER"), "ab", 1, &again), 0);
	assert_int_equal(java_keystore_add(v, VIEW("OTHER"), "cd", 1, &again), 1);
}

static void what_is_no_keystore_stays(void **state)
{
	osb_cleanup(buf_done) struct buf other = BUF_INIT(4096), cut = BUF_INIT(4096);
	osb_cleanup(buf_done) struct buf out = BUF_INIT(4096);
	struct view cases[8];
	size_t n = 0;

	make_jks(&other, EMPTY, "\0x", 2); /* another password */
	make_jks(&cut, VIEW("\xfe\xed\xfe\xed\0\0\0\1\0\0\0\0"), SALT, sizeof(SALT) - 1);
	cases[n++] = buf_view(&other);
	cases[n++] = buf_view(&cut);
	cases[n++] = VIEW("");
	cases[n++] = VIEW("\xfe\xed\xfe\xed");
	cases[n++] = VIEW("-----BEGIN CERTIFICATE-----");
	cases[n++] = VIEW(P12 "x");
	cases[n++] = VIEW("\x30\x84\xff\xff\xff\xff");
	/* One with a password ends with a code over the rest. */
	cases[n++] = VIEW("\x30\x18\x02\x01\x03\x30\x11\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01"
			  "\xa0\x04\x04\x02\x30\0\x30\0");
	for (size_t i = 0; i < n; i++)
		assert_int_equal(java_keystore_add(cases[i], VIEW("DER"), "a", 1, &out), -EINVAL);
	assert_int_equal(java_keystore_add(VIEW(P12), VIEW(""), "a", 1, &out), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_jks_takes_a_certificate_once),
		cmocka_unit_test(a_pkcs12_takes_a_certificate_once),
		cmocka_unit_test(what_is_no_keystore_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
