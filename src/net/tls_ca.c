/*
 * net/tls_ca.c - keys by HKDF on P-256, certificates, and a bounded number of contexts.
 */
#include "net/tls_ca.h"

#include <errno.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/kdf.h>
#include <openssl/obj_mac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/tls_int.h"

#define HOSTS_MAX  64		    /* certificates that are kept */
#define LEAF_AGE_S (7 * 24 * 3600)  /* older ones are made anew */
#define LEAF_S	   (90 * 24 * 3600) /* how long one is good */
#define PAST_S	   (24 * 3600)	    /* clocks may differ */
#define WIDE_BYTES 48		    /* 128 bits more than the order: what is left of them is even */

struct leaf {
	struct list link; /* the one used last is the last */
	char *host;
	SSL_CTX *ctx;
	time_t made;
};

struct tls_ca {
	EVP_PKEY *key;
	X509 *cert;
	EVP_PKEY *leaf_key; /* one for all hosts: it proves nothing about any of them */
	struct map *by_host;
	struct list leaves;
	size_t n;
};

DEFINE_CLEANUP(BIGNUM *, BN_clear_free)
DEFINE_CLEANUP(EC_GROUP *, EC_GROUP_free)
DEFINE_CLEANUP(EC_POINT *, EC_POINT_free)
DEFINE_CLEANUP(EVP_KDF *, EVP_KDF_free)
DEFINE_CLEANUP(EVP_KDF_CTX *, EVP_KDF_CTX_free)
DEFINE_CLEANUP(EVP_PKEY_CTX *, EVP_PKEY_CTX_free)
DEFINE_CLEANUP(OSSL_PARAM_BLD *, OSSL_PARAM_BLD_free)
DEFINE_CLEANUP(OSSL_PARAM *, OSSL_PARAM_free)
DEFINE_CLEANUP(SSL_CTX *, SSL_CTX_free)
DEFINE_CLEANUP(X509 *, X509_free)
DEFINE_CLEANUP(EVP_PKEY *, EVP_PKEY_free)
DEFINE_CLEANUP(BIO *, BIO_free)

/* ---- keys ---- */

static bool expand(const unsigned char secret[TLS_CA_SECRET_BYTES], const char *name,
		   const char *use, unsigned char *ret, size_t n)
{
	osb_cleanup(EVP_KDF_freep) EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	osb_cleanup(EVP_KDF_CTX_freep) EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)"SHA256", 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)secret,
						  TLS_CA_SECRET_BYTES),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)use, strlen(use)),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)name, strlen(name)),
		OSSL_PARAM_construct_end(),
	};

	return ctx && EVP_KDF_derive(ctx, ret, n, params) == 1;
}

/* A number from 1 to the order less one. */
static BIGNUM *scalar_of(const EC_GROUP *group, const unsigned char wide[WIDE_BYTES], BN_CTX *bn)
{
	osb_cleanup(BN_clear_freep) BIGNUM *d = BN_secure_new(), *range = BN_new();

	if (!d || !range || !BN_bin2bn(wide, WIDE_BYTES, d) ||
	    !BN_sub(range, EC_GROUP_get0_order(group), BN_value_one()) ||
	    !BN_mod(d, d, range, bn) || !BN_add(d, d, BN_value_one()))
		return NULL;
	return take_ptr(d);
}

static EVP_PKEY *key_of(const BIGNUM *d, const unsigned char *point, size_t point_len)
{
	osb_cleanup(OSSL_PARAM_BLD_freep) OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
	osb_cleanup(OSSL_PARAM_freep) OSSL_PARAM *params = NULL;
	osb_cleanup(EVP_PKEY_CTX_freep) EVP_PKEY_CTX *ctx = NULL;
	EVP_PKEY *key = NULL;

	if (!b || !OSSL_PARAM_BLD_push_utf8_string(b, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) ||
	    !OSSL_PARAM_BLD_push_octet_string(b, OSSL_PKEY_PARAM_PUB_KEY, point, point_len) ||
	    !OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_PRIV_KEY, d))
		return NULL;
	params = OSSL_PARAM_BLD_to_param(b);
	ctx = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
	if (!params || !ctx || EVP_PKEY_fromdata_init(ctx) != 1 ||
	    EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_KEYPAIR, params) != 1)
		return NULL;
	return key;
}

static EVP_PKEY *derive(const unsigned char wide[WIDE_BYTES])
{
	osb_cleanup(EC_GROUP_freep) EC_GROUP *group =
		EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
	osb_cleanup(EC_POINT_freep) EC_POINT *point = group ? EC_POINT_new(group) : NULL;
	osb_cleanup(BN_clear_freep) BIGNUM *d = NULL;
	BN_CTX *bn = BN_CTX_secure_new();
	unsigned char text[65];
	EVP_PKEY *key = NULL;

	d = point && bn ? scalar_of(group, wide, bn) : NULL;
	if (d && EC_POINT_mul(group, point, d, NULL, NULL, bn) == 1 &&
	    EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, text, sizeof(text),
			       bn) == sizeof(text))
		key = key_of(d, text, sizeof(text));
	BN_CTX_free(bn);
	return key;
}

/* ---- certificates ---- */

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *x;
	X509V3_CTX ctx;
	bool fine;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	x = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	fine = x && X509_add_ext(cert, x, -1) == 1;
	X509_EXTENSION_free(x);
	return fine;
}

static bool set_name(X509_NAME *name, const char *common)
{
	return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8,
					  (const unsigned char *)"OpenSandbox", -1, -1, 0) == 1 &&
	       (!common ||
		X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)common,
					   -1, -1, 0) == 1);
}

static bool set_serial(X509 *cert, const unsigned char bytes[16])
{
	osb_cleanup(BN_clear_freep) BIGNUM *n = BN_bin2bn(bytes, 16, NULL);

	return n && BN_clear_bit(n, 127) >= 0 && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
}

/* The same from year to year: the sandbox trusts the one that it was given at its start. */
static X509 *make_authority(EVP_PKEY *key, const char *name, const unsigned char serial[16])
{
	osb_cleanup(X509_freep) X509 *cert = X509_new();
	char common[64];

	snprintf(common, sizeof(common), "OpenSandbox vault %.44s", name);
	if (!cert || !X509_set_version(cert, X509_VERSION_3) || !set_serial(cert, serial) ||
	    !ASN1_TIME_set_string_X509(X509_getm_notBefore(cert), "20200101000000Z") ||
	    !ASN1_TIME_set_string_X509(X509_getm_notAfter(cert), "20991231235959Z") ||
	    !set_name(X509_get_subject_name(cert), common) ||
	    !X509_set_issuer_name(cert, X509_get_subject_name(cert)) ||
	    !X509_set_pubkey(cert, key) ||
	    !add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
	    !add_extension(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign") ||
	    !add_extension(cert, cert, NID_subject_key_identifier, "hash") ||
	    X509_sign(cert, key, EVP_sha256()) <= 0)
		return NULL;
	return take_ptr(cert);
}

static X509 *make_leaf(struct tls_ca *ca, const char *host)
{
	osb_cleanup(X509_freep) X509 *cert = X509_new();
	unsigned char serial[16];
	char alt[300];

	snprintf(alt, sizeof(alt), "DNS:%s", host);
	/* Longer names do not fit into a common name; nobody looks at it any more. */
	if (!cert || RAND_bytes(serial, sizeof(serial)) != 1 ||
	    !X509_set_version(cert, X509_VERSION_3) || !set_serial(cert, serial) ||
	    !X509_gmtime_adj(X509_getm_notBefore(cert), -PAST_S) ||
	    !X509_gmtime_adj(X509_getm_notAfter(cert), LEAF_S) ||
	    !set_name(X509_get_subject_name(cert), strlen(host) <= 64 ? host : NULL) ||
	    !X509_set_issuer_name(cert, X509_get_subject_name(ca->cert)) ||
	    !X509_set_pubkey(cert, ca->leaf_key) ||
	    !add_extension(cert, ca->cert, NID_basic_constraints, "critical,CA:FALSE") ||
	    !add_extension(cert, ca->cert, NID_key_usage, "critical,digitalSignature") ||
	    !add_extension(cert, ca->cert, NID_ext_key_usage, "serverAuth") ||
	    !add_extension(cert, ca->cert, NID_subject_key_identifier, "hash") ||
	    !add_extension(cert, ca->cert, NID_authority_key_identifier, "keyid:always") ||
	    !add_extension(cert, ca->cert, NID_subject_alt_name, alt) ||
	    X509_sign(cert, ca->key, EVP_sha256()) <= 0)
		return NULL;
	return take_ptr(cert);
}

/* ---- contexts ---- */

static void leaf_free(struct tls_ca *ca, struct leaf *leaf)
{
	map_remove(ca->by_host, view_of(leaf->host));
	list_remove(&leaf->link);
	ca->n--;
	SSL_CTX_free(leaf->ctx);
	free(leaf->host);
	free(leaf);
}

static SSL_CTX *context_for(struct tls_ca *ca, const char *host)
{
	osb_cleanup(SSL_CTX_freep) SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	osb_cleanup(X509_freep) X509 *cert = make_leaf(ca, host);

	if (!ctx || !cert || SSL_CTX_use_certificate(ctx, cert) != 1 ||
	    SSL_CTX_use_PrivateKey(ctx, ca->leaf_key) != 1)
		return NULL;
	return take_ptr(ctx);
}

/* What goes into an extension's text must be no more than a name. */
static bool is_host(const char *host)
{
	size_t n = strlen(host);

	return n > 0 && n <= 253 && strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == n;
}

void *tls_ca_context(struct tls_ca *ca, const char *host, struct err *e)
{
	struct leaf *leaf = map_get(ca->by_host, view_of(host));
	time_t now = time(NULL);
	SSL_CTX *ctx;

	if (leaf && leaf->made <= now && now - leaf->made < LEAF_AGE_S) {
		list_remove(&leaf->link);
		list_push_back(&ca->leaves, &leaf->link);
		return leaf->ctx;
	}
	if (leaf)
		leaf_free(ca, leaf);
	if (!is_host(host)) {
		(void)err_set(e, -EINVAL, "no certificate can be made for this name");
		return NULL;
	}
	ctx = context_for(ca, host);
	if (!ctx) {
		(void)tls_complain(e, -ENOMEM, "make a certificate");
		return NULL;
	}
	if (ca->n >= HOSTS_MAX)
		leaf_free(ca, list_entry(ca->leaves.next, struct leaf, link));
	leaf = mem_new(struct leaf);
	leaf->host = mem_strdup(host);
	leaf->ctx = ctx;
	leaf->made = now;
	map_put(ca->by_host, view_of(host), leaf);
	list_push_back(&ca->leaves, &leaf->link);
	ca->n++;
	return ctx;
}

/* ---- life ---- */

int tls_ca_new(const unsigned char secret[TLS_CA_SECRET_BYTES], const char *name,
	       struct tls_ca **ret, struct err *e)
{
	osb_cleanup(tls_ca_freep) struct tls_ca *ca = mem_new(struct tls_ca);
	unsigned char wide[WIDE_BYTES], serial[16];

	list_init(&ca->leaves);
	ca->by_host = map_new();
	if (expand(secret, name, "opensandbox vault authority key", wide, sizeof(wide)) &&
	    expand(secret, name, "opensandbox vault authority serial", serial, sizeof(serial)))
		ca->key = derive(wide);
	explicit_bzero(wide, sizeof(wide));
	if (ca->key)
		ca->cert = make_authority(ca->key, name, serial);
	if (ca->cert)
		ca->leaf_key = EVP_EC_gen("P-256");
	if (!ca->leaf_key)
		return tls_complain(e, -ENOMEM, "make a certificate authority");
	*ret = take_ptr(ca);
	return 0;
}

void tls_ca_free(struct tls_ca *ca)
{
	if (!ca)
		return;
	list_each_safe (it, next, &ca->leaves)
		leaf_free(ca, list_entry(it, struct leaf, link));
	map_free(ca->by_host);
	EVP_PKEY_free(ca->key);
	EVP_PKEY_free(ca->leaf_key);
	X509_free(ca->cert);
	free(ca);
}

int tls_ca_pem(const struct tls_ca *ca, struct buf *out, struct err *e)
{
	osb_cleanup(BIO_freep) BIO *text = BIO_new(BIO_s_mem());
	char *p = NULL;
	long n;

	if (!text || PEM_write_bio_X509(text, ca->cert) != 1)
		return tls_complain(e, -ENOMEM, "write a certificate");
	n = BIO_get_mem_data(text, &p);
	if (n < 0 || buf_append(out, p, (size_t)n) < 0)
		return err_set(e, -E2BIG, "the certificate is too large");
	return 0;
}
