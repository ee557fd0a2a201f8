/*
 * sdk/wire_tls.c - OpenSSL between two buffers: it never touches the socket, so that limits hold
 * and no signal is raised in a program that is not ours.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sdk/wire_int.h"

#define RECORD 16384

struct wire_tls {
	SSL *ssl;
	BIO *in, *out; /* ciphertext; the SSL's */
	bool eof;
};

struct wire_trust {
	SSL_CTX *ctx;
};

/* The first reason that OpenSSL gives. */
static const char *reason(void)
{
	unsigned long code = ERR_get_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;

	ERR_clear_error();
	return text ? text : "unknown failure";
}

int wire_trust_new(const char *ca_file, struct wire_trust **ret, struct err *e)
{
	struct wire_trust *t = mem_new(struct wire_trust);

	t->ctx = SSL_CTX_new(TLS_client_method());
	if (!t->ctx || SSL_CTX_set_min_proto_version(t->ctx, TLS1_2_VERSION) != 1 ||
	    (ca_file ? SSL_CTX_load_verify_locations(t->ctx, ca_file, NULL)
		     : SSL_CTX_set_default_verify_paths(t->ctx)) != 1) {
		wire_trust_free(t);
		return err_set(e, -EINVAL, "read authorities%s%s: %s", ca_file ? " from " : "",
			       ca_file ? ca_file : "", reason());
	}
	SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
	*ret = t;
	return 0;
}

void wire_trust_free(struct wire_trust *t)
{
	if (!t)
		return;
	SSL_CTX_free(t->ctx);
	free(t);
}

/* ---- between the buffers and the socket ---- */

static int flush(struct wire *w, const struct wire_limit *limit, struct err *e)
{
	char *p = NULL;
	long n = BIO_get_mem_data(w->tls->out, &p);
	ssize_t r = n > 0 ? wire_plain_write(w, view_mem(p, (size_t)n), limit, e) : 0;

	(void)BIO_reset(w->tls->out);
	return r < 0 ? (int)r : 0;
}

static int fill(struct wire *w, const struct wire_limit *limit, struct err *e)
{
	char block[RECORD];
	ssize_t n = wire_plain_read(w, block, sizeof(block), limit, e);

	if (n < 0)
		return (int)n;
	if (n == 0)
		w->tls->eof = true;
	else if (BIO_write(w->tls->in, block, (int)n) != n)
		return err_set(e, -ENOMEM, "no memory for a TLS record");
	return 0;
}

static int certificate_failure(struct wire *w, struct err *e)
{
	long verdict = SSL_get_verify_result(w->tls->ssl);

	if (verdict != X509_V_OK)
		return err_set(e, -EKEYREJECTED, "the server's certificate is not good: %s",
			       X509_verify_cert_error_string(verdict));
	return err_set(e, -EKEYREJECTED, "TLS: %s", reason());
}

/* What to do about an answer of OpenSSL's: 0 = try again. */
static int go_on(struct wire *w, int result, const struct wire_limit *limit, struct err *e)
{
	int what = SSL_get_error(w->tls->ssl, result);
	int r = flush(w, limit, e);

	if (r < 0)
		return r;
	if (what == SSL_ERROR_WANT_READ && w->tls->eof)
		return err_set(e, -ECONNRESET, "the server closed the connection");
	if (what == SSL_ERROR_WANT_READ)
		return fill(w, limit, e);
	if (what == SSL_ERROR_WANT_WRITE)
		return 0;
	return certificate_failure(w, e);
}

/* ---- what wire.c asks for ---- */

static bool expect_host(SSL *ssl, const char *host)
{
	unsigned char address[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
	return SSL_set_tlsext_host_name(ssl, host) == 1 && SSL_set1_host(ssl, host) == 1;
}

int wire_tls_begin(struct wire *w, struct wire_trust *trust, const char *host,
		   const struct wire_limit *limit, struct err *e)
{
	static const unsigned char protocols[] = "\x08http/1.1";
	struct wire_tls *t = mem_new(struct wire_tls);
	int n, r = 0;

	w->tls = t;
	ERR_clear_error();
	t->ssl = SSL_new(trust->ctx);
	t->in = BIO_new(BIO_s_mem());
	t->out = BIO_new(BIO_s_mem());
	if (!t->ssl || !t->in || !t->out) {
		BIO_free(t->in);
		BIO_free(t->out);
		return err_set(e, -ENOMEM, "TLS: %s", reason());
	}
	BIO_set_mem_eof_return(t->in, -1);
	SSL_set_bio(t->ssl, t->in, t->out);
	(void)SSL_set_alpn_protos(t->ssl, protocols, sizeof(protocols) - 1);
	if (!expect_host(t->ssl, host))
		return err_set(e, -EINVAL, "'%s' is no name that a certificate can have", host);
	while ((n = SSL_connect(t->ssl)) != 1 && r == 0)
		r = go_on(w, n, limit, e);
	return r < 0 ? r : flush(w, limit, e);
}

void wire_tls_end(struct wire *w)
{
	if (!w->tls)
		return;
	SSL_free(w->tls->ssl);
	free(w->tls);
	w->tls = NULL;
}

ssize_t wire_tls_write(struct wire *w, struct view bytes, const struct wire_limit *limit,
		       struct err *e)
{
	size_t done = 0;

	while (done < bytes.len) {
		size_t n = 0;
		int r;

		ERR_clear_error();
		r = SSL_write_ex(w->tls->ssl, bytes.p + done, MIN(bytes.len - done, (size_t)RECORD),
				 &n);
		done += n;
		r = r == 1 ? flush(w, limit, e) : go_on(w, r, limit, e);
		if (r < 0)
			return r;
	}
	return (ssize_t)done;
}

ssize_t wire_tls_read(struct wire *w, void *p, size_t n, const struct wire_limit *limit,
		      struct err *e)
{
	for (;;) {
		size_t got = 0;
		int r;

		ERR_clear_error();
		r = SSL_read_ex(w->tls->ssl, p, n, &got);
		if (r == 1)
			return (ssize_t)got;
		if (SSL_get_error(w->tls->ssl, r) == SSL_ERROR_ZERO_RETURN)
			return 0;
		r = go_on(w, r, limit, e);
		if (r < 0)
			return r;
	}
}

int wire_tls_say_end(struct wire *w, struct err *e)
{
	struct wire_limit none = {0};

	ERR_clear_error();
	if (SSL_shutdown(w->tls->ssl) < 0)
		return err_set(e, -EPROTO, "TLS: %s", reason());
	return flush(w, &none, e);
}

bool wire_tls_pending(const struct wire *w)
{
	return w->tls && SSL_pending(w->tls->ssl) > 0;
}
