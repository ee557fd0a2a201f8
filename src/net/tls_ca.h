/*
 * net/tls_ca.h - a certificate authority whose key is never stored: it follows from a secret and a
 * name, and so does its certificate but for the signature.
 *
 * It makes certificates for host names as they are asked for, and keeps so many of them.
 */
#pragma once

#include "base/macro.h"

struct buf;
struct err;
struct tls_ca;

#define TLS_CA_SECRET_BYTES 32

osb_must_check int tls_ca_new(const unsigned char secret[TLS_CA_SECRET_BYTES], const char *name,
			      struct tls_ca **ret, struct err *e);
void tls_ca_free(struct tls_ca *ca); /* accepts NULL; contexts that are in use live on */
DEFINE_CLEANUP(struct tls_ca *, tls_ca_free)

/* Its certificate, PEM. */
osb_must_check int tls_ca_pem(const struct tls_ca *ca, struct buf *out, struct err *e);

/* A context (SSL_CTX *) with a certificate for `host`, for tls_server_new_found(); the authority
 * keeps it.  NULL with a sentence. */
void *tls_ca_context(struct tls_ca *ca, const char *host, struct err *e);
