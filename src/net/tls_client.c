/*
 * net/tls_client.c - whom connections to others trust, and how a name is verified.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "net/tls_int.h"

#define SYSTEM_BUNDLE "/etc/ssl/certs/ca-certificates.crt"

struct tls_client {
	SSL_CTX *ctx;
};

static SSL_CTX *new_context(struct err *e)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) ||
	    SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)"\x08http/1.1", 9) != 0) {
		(void)tls_complain(e, -ENOMEM, "make a TLS context");
		SSL_CTX_free(ctx);
		return NULL;
	}
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF |
					       SSL_OP_NO_COMPRESSION);
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
					    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					    SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	return ctx;
}

/* Files that are no certificates lie in such directories too: they are passed over. */
static int load_directory(SSL_CTX *ctx, const char *path, struct err *e)
{
	DIR *dir = opendir(path);
	struct dirent *it;
	int loaded = 0;

	if (!dir)
		return err_set(e, -errno, "open '%s': %m", path);
	while ((it = readdir(dir))) {
		char file[4096];
		struct stat st;

		if (snprintf(file, sizeof(file), "%s/%s", path, it->d_name) >= (int)sizeof(file))
			continue;
		if (stat(file, &st) == 0 && S_ISREG(st.st_mode))
			loaded += SSL_CTX_load_verify_file(ctx, file) == 1;
	}
	(void)closedir(dir);
	ERR_clear_error();
	if (!loaded)
		return err_set(e, -ENOENT, "'%s' holds no certificates", path);
	return 0;
}

static int load_authorities(SSL_CTX *ctx, const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_set(e, -errno, "open '%s': %m", path);
	if (S_ISDIR(st.st_mode))
		return load_directory(ctx, path, e);
	if (SSL_CTX_load_verify_file(ctx, path) == 1)
		return 0;
	(void)tls_complain(e, -EINVAL, "read authorities");
	return err_ctx(e, "'%s'", path);
}

int tls_client_new(const char *ca_path, struct tls_client **ret, struct err *e)
{
	SSL_CTX *ctx = new_context(e);
	int r = 0;

	if (!ctx)
		return e->code;
	/* OpenSSL's own places, and what SSL_CERT_FILE and SSL_CERT_DIR name; they may be empty. */
	(void)SSL_CTX_set_default_verify_paths(ctx);
	if (!getenv("SSL_CERT_FILE") && access(SYSTEM_BUNDLE, R_OK) == 0)
		(void)SSL_CTX_load_verify_file(ctx, SYSTEM_BUNDLE);
	ERR_clear_error();
	if (ca_path)
		r = load_authorities(ctx, ca_path, e);
	if (r < 0) {
		SSL_CTX_free(ctx);
		return r;
	}
	*ret = mem_new(struct tls_client);
	(*ret)->ctx = ctx;
	return 0;
}

void tls_client_free(struct tls_client *c)
{
	if (!c)
		return;
	SSL_CTX_free(c->ctx);
	free(c);
}

static bool is_address(const char *name)
{
	unsigned char address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

static bool expect_name(SSL *ssl, const char *name)
{
	if (is_address(name))
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return *name && SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

SSL *tls_client_ssl(struct tls_client *c, const char *name, struct err *e)
{
	SSL *ssl = SSL_new(c->ctx);

	if (!ssl || !expect_name(ssl, name)) {
		(void)tls_complain(e, -EINVAL, "begin a TLS connection");
		SSL_free(ssl);
		return NULL;
	}
	SSL_set_connect_state(ssl);
	return ssl;
}
