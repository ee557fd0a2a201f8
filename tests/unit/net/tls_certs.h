/*
 * tls_certs.h - an authority and certificates that a test makes for itself.
 */
#pragma once

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "net_test.h"

struct test_cert {
	X509 *x509;
	EVP_PKEY *key;
	char *cert_pem, *key_pem;
};

static inline char *bio_text(BIO *bio)
{
	char *bytes, *text;
	long n = BIO_get_mem_data(bio, &bytes);

	text = strndup(bytes, (size_t)n);
	BIO_free(bio);
	return text;
}

static inline void add_extension(X509 *x, X509V3_CTX *ctx, int nid, const char *value)
{
	X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, ctx, nid, value);

	assert_non_null(ext);
	assert_int_equal(X509_add_ext(x, ext, -1), 1);
	X509_EXTENSION_free(ext);
}

/* `names` is a subjectAltName ("DNS:a.test,IP:127.0.0.1"), NULL for an authority. */
static inline struct test_cert test_cert_new(const char *names, const struct test_cert *issuer,
					     long valid_s)
{
	struct test_cert c = {.x509 = X509_new(), .key = EVP_EC_gen("P-256")};
	static long serial;
	X509V3_CTX ctx;
	X509_NAME *name;
	BIO *bio;

	assert_non_null(c.key);
	X509_set_version(c.x509, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(c.x509), ++serial);
	X509_gmtime_adj(X509_getm_notBefore(c.x509), valid_s < 0 ? 2 * valid_s : -3600);
	X509_gmtime_adj(X509_getm_notAfter(c.x509), valid_s);
	X509_set_pubkey(c.x509, c.key);
	name = X509_get_subject_name(c.x509);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
				   (const unsigned char *)(names ? "leaf" : "authority"), -1, -1,
				   0);
	X509_set_issuer_name(c.x509, issuer ? X509_get_subject_name(issuer->x509) : name);
	X509V3_set_ctx(&ctx, issuer ? issuer->x509 : c.x509, c.x509, NULL, NULL, 0);
	add_extension(c.x509, &ctx, NID_basic_constraints, names ? "CA:FALSE" : "CA:TRUE");
	if (names)
		add_extension(c.x509, &ctx, NID_subject_alt_name, names);
	assert_true(X509_sign(c.x509, issuer ? issuer->key : c.key, EVP_sha256()) > 0);
	bio = BIO_new(BIO_s_mem());
	PEM_write_bio_X509(bio, c.x509);
	c.cert_pem = bio_text(bio);
	bio = BIO_new(BIO_s_mem());
	PEM_write_bio_PrivateKey(bio, c.key, NULL, NULL, 0, NULL, NULL);
	c.key_pem = bio_text(bio);
	return c;
}

static inline void test_cert_done(struct test_cert *c)
{
	X509_free(c->x509);
	EVP_PKEY_free(c->key);
	free(c->cert_pem);
	free(c->key_pem);
}

static inline void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fputs(text, f) >= 0, 1);
	assert_int_equal(fclose(f), 0);
}
