/*
 * net/tls_server.c - certificates that connections are answered with.
 *
 * A context is never changed once it is in use: new certificates make a new one, and connections
 * keep the one that they began with.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "net/tls_int.h"

#define CHAIN_MAX 16

struct tls_server {
	char *cert_file, *key_file; /* NULL: not from files */
	SSL_CTX *ctx;
	int64_t until;
	tls_find_fn *find; /* or NULL */
	void *find_arg;
	unsigned refs; /* its owner's, and one for each handshake */
};

DEFINE_CLEANUP(SSL_CTX *, SSL_CTX_free)
DEFINE_CLEANUP(BIO *, BIO_free)
DEFINE_CLEANUP(X509 *, X509_free)
DEFINE_CLEANUP(EVP_PKEY *, EVP_PKEY_free)

int tls_complain(struct err *e, int code, const char *what)
{
	unsigned long first = ERR_get_error();
	const char *why = first ? ERR_reason_error_string(first) : NULL;

	ERR_clear_error();
	return err_set(e, code, "%s: %s", what, why ? why : "OpenSSL says no more");
}

static struct tls_server *server_new(void)
{
	struct tls_server *s = mem_new(struct tls_server);

	s->refs = 1;
	return s;
}

/* ---- contexts ---- */

static int choose_http(SSL *ssl, const unsigned char **out, unsigned char *out_len,
		       const unsigned char *in, unsigned in_len, void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";

	/* A client that offers only what is not spoken here is told so, instead of misunderstood.
	 */
	if (SSL_select_next_proto((unsigned char **)out, out_len, ours, sizeof(ours) - 1, in,
				  in_len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *new_context(struct err *e)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION)) {
		(void)tls_complain(e, -ENOMEM, "make a TLS context");
		SSL_CTX_free(ctx);
		return NULL;
	}
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF |
					       SSL_OP_NO_COMPRESSION |
					       SSL_OP_CIPHER_SERVER_PREFERENCE |
					       SSL_OP_PRIORITIZE_CHACHA);
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
					    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					    SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_alpn_select_cb(ctx, choose_http, NULL);
	return ctx;
}

/* Nobody is asked for a password. */
static int no_password(char *buf, int size, int writing, void *arg)
{
	return -1;
}

static int use_chain(SSL_CTX *ctx, BIO *pem, int64_t *ret_until, struct err *e)
{
	osb_cleanup(X509_freep) X509 *cert = PEM_read_bio_X509_AUX(pem, NULL, no_password, NULL);
	struct tm until = {0};

	if (!cert)
		return tls_complain(e, -EINVAL, "read the certificate");
	if (SSL_CTX_use_certificate(ctx, cert) != 1)
		return tls_complain(e, -EINVAL, "use the certificate");
	if (ASN1_TIME_to_tm(X509_get0_notAfter(cert), &until) == 1)
		*ret_until = timegm(&until);
	for (int i = 0;; i++) {
		X509 *next = PEM_read_bio_X509(pem, NULL, no_password, NULL);

		if (!next && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE) {
			ERR_clear_error(); /* that was all */
			return 0;
		}
		if (!next)
			return tls_complain(e, -EINVAL, "read the certificate's chain");
		if (i == CHAIN_MAX || SSL_CTX_add0_chain_cert(ctx, next) != 1) {
			X509_free(next);
			return tls_complain(e, -EINVAL, "use the certificate's chain");
		}
	}
}

static int use_key(SSL_CTX *ctx, struct view text, struct err *e)
{
	osb_cleanup(BIO_freep) BIO *pem = BIO_new_mem_buf(text.p, (int)text.len);
	osb_cleanup(EVP_PKEY_freep) EVP_PKEY *key = NULL;

	key = pem ? PEM_read_bio_PrivateKey(pem, NULL, no_password, NULL) : NULL;
	if (!key)
		return tls_complain(e, -EINVAL, "read the key (PEM without a password is wanted)");
	if (SSL_CTX_use_PrivateKey(ctx, key) != 1 || SSL_CTX_check_private_key(ctx) != 1)
		return tls_complain(e, -EINVAL, "use the key with the certificate");
	return 0;
}

int tls_server_use_pem(struct tls_server *s, struct view cert, struct view key, struct err *e)
{
	osb_cleanup(SSL_CTX_freep) SSL_CTX *ctx = new_context(e);
	osb_cleanup(BIO_freep) BIO *pem = NULL;
	int64_t until = 0;
	int r;

	if (!ctx)
		return e->code;
	if (cert.len > TLS_PEM_MAX || key.len > TLS_PEM_MAX)
		return err_set(e, -E2BIG, "a certificate or key of more than %u bytes",
			       TLS_PEM_MAX);
	pem = BIO_new_mem_buf(cert.p, (int)cert.len);
	if (!pem)
		return tls_complain(e, -ENOMEM, "read the certificate");
	r = use_chain(ctx, pem, &until, e);
	r = r ? r : use_key(ctx, key, e);
	if (r < 0)
		return r;
	SSL_CTX_free(s->ctx);
	s->ctx = take_ptr(ctx);
	s->until = until;
	return 0;
}

/* ---- files ---- */

void tls_wipe(struct buf *b)
{
	if (b->mem)
		OPENSSL_cleanse(b->mem, b->cap);
	buf_done(b);
}

int tls_read_pem(const char *path, struct buf *ret, struct stat *ret_stat, struct err *e)
{
	osb_cleanup(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *room;
	ssize_t n;

	if (fd < 0 || fstat(fd, ret_stat) < 0)
		return err_set(e, -errno, "open '%s': %m", path);
	if (!S_ISREG(ret_stat->st_mode) || ret_stat->st_size > TLS_PEM_MAX)
		return err_set(e, -EINVAL, "'%s' is not a file of at most %u bytes", path,
			       TLS_PEM_MAX);
	room = buf_reserve(ret, TLS_PEM_MAX);
	if (!room)
		return err_set(e, -E2BIG, "read '%s': too large", path);
	n = read(fd, room, TLS_PEM_MAX);
	if (n < 0)
		return err_set(e, -errno, "read '%s': %m", path);
	if (memchr(room, '\0', (size_t)n))
		return err_set(e, -EINVAL, "'%s' is not PEM", path);
	buf_commit(ret, (size_t)n);
	return 0;
}

int tls_server_reload(struct tls_server *s, struct err *e)
{
	osb_cleanup(tls_wipe) struct buf cert = BUF_INIT(TLS_PEM_MAX), key = BUF_INIT(TLS_PEM_MAX);
	struct stat st;
	int r;

	if (!s->cert_file)
		return err_set(e, -EINVAL, "these certificates came from no file");
	r = tls_read_pem(s->cert_file, &cert, &st, e);
	r = r ? r : tls_read_pem(s->key_file, &key, &st, e);
	return r ? r : tls_server_use_pem(s, buf_view(&cert), buf_view(&key), e);
}

int tls_server_new(const char *cert_file, const char *key_file, struct tls_server **ret,
		   struct err *e)
{
	struct tls_server *s = server_new();
	int r;

	s->cert_file = mem_strdup(cert_file);
	s->key_file = mem_strdup(key_file);
	r = tls_server_reload(s, e);
	if (r < 0) {
		tls_server_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

int tls_server_new_pem(struct view cert, struct view key, struct tls_server **ret, struct err *e)
{
	struct tls_server *s = server_new();
	int r = tls_server_use_pem(s, cert, key, e);

	if (r < 0) {
		tls_server_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

int64_t tls_server_until(const struct tls_server *s)
{
	return s->until;
}

struct tls_server *tls_server_ref(struct tls_server *s)
{
	s->refs++;
	return s;
}

void tls_server_unref(struct tls_server *s)
{
	if (!s || --s->refs)
		return;
	SSL_CTX_free(s->ctx);
	free(s->cert_file);
	free(s->key_file);
	free(s);
}

void tls_server_free(struct tls_server *s)
{
	if (!s)
		return;
	s->find = NULL;
	tls_server_unref(s);
}

/* ---- certificates by name ---- */

static int find_certificate(SSL *ssl, void *arg)
{
	struct tls_server *s = SSL_get_app_data(ssl);
	SSL_CTX *found;
	STACK_OF(X509) *chain = NULL;
	X509 *cert;
	EVP_PKEY *key;

	if (!s->find)
		return 0; /* its owner has gone */
	found = s->find(s->find_arg, SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name));
	if (!found)
		return 0;
	cert = SSL_CTX_get0_certificate(found);
	key = SSL_CTX_get0_privatekey(found);
	(void)SSL_CTX_get0_chain_certs(found, &chain);
	return cert && key && SSL_use_cert_and_key(ssl, cert, key, chain, /* override= */ 1) == 1;
}

int tls_server_new_found(tls_find_fn *find, void *arg, struct tls_server **ret, struct err *e)
{
	SSL_CTX *ctx = new_context(e);
	struct tls_server *s;

	if (!ctx)
		return e->code;
	/* A session must not be resumed under another name than it began with: none is kept. */
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	(void)SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_cert_cb(ctx, find_certificate, NULL);
	s = server_new();
	s->ctx = ctx;
	s->find = find;
	s->find_arg = arg;
	*ret = s;
	return 0;
}

SSL *tls_server_ssl(struct tls_server *s, struct err *e)
{
	SSL *ssl = SSL_new(s->ctx);

	if (!ssl) {
		(void)tls_complain(e, -ENOMEM, "begin a TLS connection");
		return NULL;
	}
	(void)SSL_set_app_data(ssl, s);
	SSL_set_accept_state(ssl);
	return ssl;
}
