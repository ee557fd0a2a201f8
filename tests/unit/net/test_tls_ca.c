/*
 * Authorities that follow from a secret: the same one again, others for others, and certificates
 * that clients believe.
 */
#include <stdarg.h>
#include <stddef.h>

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "net/tls_ca.h"

static const unsigned char secret[TLS_CA_SECRET_BYTES] = "a secret of thirty-two bytes...";

DEFINE_CLEANUP(X509 *, X509_free)
DEFINE_CLEANUP(X509_STORE *, X509_STORE_free)
DEFINE_CLEANUP(X509_STORE_CTX *, X509_STORE_CTX_free)

static struct tls_ca *ca_of(const unsigned char *bytes, const char *name)
{
	struct err e = ERR_NONE;
	struct tls_ca *ca = NULL;

	if (tls_ca_new(bytes, name, &ca, &e) < 0)
		fail_msg("%s", e.msg);
	return ca;
}

static X509 *certificate_of(const struct tls_ca *ca)
{
	osb_cleanup(buf_done) struct buf pem = BUF_INIT(16384);
	struct err e = ERR_NONE;
	BIO *text;
	X509 *cert;

	assert_int_equal(tls_ca_pem(ca, &pem, &e), 0);
	text = BIO_new_mem_buf(buf_view(&pem).p, (int)pem.len);
	cert = PEM_read_bio_X509(text, NULL, NULL, NULL);
	BIO_free(text);
	assert_non_null(cert);
	return cert;
}

/* Does whoever trusts `root` believe that the context is `host`'s? */
static bool is_believed(X509 *root, SSL_CTX *ctx, const char *host)
{
	osb_cleanup(X509_STORE_freep) X509_STORE *store = X509_STORE_new();
	osb_cleanup(X509_STORE_CTX_freep) X509_STORE_CTX *check = X509_STORE_CTX_new();
	X509_VERIFY_PARAM *param;

	assert_int_equal(X509_STORE_add_cert(store, root), 1);
	assert_int_equal(X509_STORE_CTX_init(check, store, SSL_CTX_get0_certificate(ctx), NULL), 1);
	param = X509_STORE_CTX_get0_param(check);
	X509_VERIFY_PARAM_set1_host(param, host, 0);
	X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER);
	X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
	return X509_verify_cert(check) == 1;
}

static void the_same_secret_makes_the_same_authority(void **state)
{
	osb_cleanup(tls_ca_freep) struct tls_ca *a = ca_of(secret, "box-1");
	osb_cleanup(tls_ca_freep) struct tls_ca *b = ca_of(secret, "box-1");
	osb_cleanup(X509_freep) X509 *first = certificate_of(a), *second = certificate_of(b);
	struct err e = ERR_NONE;
	SSL_CTX *ctx = tls_ca_context(b, "api.example.com", &e);

	assert_int_equal(EVP_PKEY_eq(X509_get0_pubkey(first), X509_get0_pubkey(second)), 1);
	assert_int_equal(X509_NAME_cmp(X509_get_subject_name(first), X509_get_subject_name(second)),
			 0);
	assert_int_equal(
		ASN1_INTEGER_cmp(X509_get0_serialNumber(first), X509_get0_serialNumber(second)), 0);
	/* Whoever was told of the one believes the other. */
	assert_non_null(ctx);
	assert_true(is_believed(first, ctx, "api.example.com"));
	assert_false(is_believed(first, ctx, "other.example.com"));
}

static void others_have_other_authorities(void **state)
{
	static const unsigned char other[TLS_CA_SECRET_BYTES] = "another secret of as many bytes";
	osb_cleanup(tls_ca_freep) struct tls_ca *a = ca_of(secret, "box-1");
	osb_cleanup(tls_ca_freep) struct tls_ca *b = ca_of(secret, "box-2");
	osb_cleanup(tls_ca_freep) struct tls_ca *c = ca_of(other, "box-1");
	osb_cleanup(X509_freep) X509 *root = certificate_of(a);
	struct err e = ERR_NONE;

	assert_false(is_believed(root, tls_ca_context(b, "a.test", &e), "a.test"));
	assert_false(is_believed(root, tls_ca_context(c, "a.test", &e), "a.test"));
	assert_true(is_believed(root, tls_ca_context(a, "a.test", &e), "a.test"));
}

static void certificates_are_kept_and_bounded(void **state)
{
	osb_cleanup(tls_ca_freep) struct tls_ca *ca = ca_of(secret, "box-1");
	osb_cleanup(X509_freep) X509 *root = certificate_of(ca);
	struct err e = ERR_NONE;
	void *first = tls_ca_context(ca, "first.test", &e);
	char name[300];

	assert_ptr_equal(tls_ca_context(ca, "first.test", &e), first);
	for (int i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "n%d.test", i);
		assert_non_null(tls_ca_context(ca, name, &e));
	}
	assert_true(is_believed(root, tls_ca_context(ca, "first.test", &e), "first.test"));
	/* Longer than a common name may be. */
	memset(name, 'a', sizeof(name));
	for (int i = 63; i < 250; i += 64)
		name[i] = '.';
	name[250] = '\0';
	assert_true(is_believed(root, tls_ca_context(ca, name, &e), name));
}

static void what_is_no_host_gets_none(void **state)
{
	static const char *const names[] = {"",	      "a b",	"a.test,DNS:b.test",
					    "A.test", "*.test", "a/b"};
	osb_cleanup(tls_ca_freep) struct tls_ca *ca = ca_of(secret, "box-1");

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct err e = ERR_NONE;

		assert_null(tls_ca_context(ca, names[i], &e));
		assert_int_equal(e.code, -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_secret_makes_the_same_authority),
		cmocka_unit_test(others_have_other_authorities),
		cmocka_unit_test(certificates_are_kept_and_bounded),
		cmocka_unit_test(what_is_no_host_gets_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
