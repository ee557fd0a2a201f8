/*
 * net/tls_int.h - what the files of TLS share: contexts, the wire below them, bridges.
 */
#pragma once

#include <openssl/ssl.h>

#include "base/buf.h"
#include "net/tls.h"

/* What a TLS connection reads from and writes to. */
struct tls_wire {
	int fd;
	struct buf early; /* read before TLS began */
	bool at_end;	  /* the peer sends no more */
	int error;	  /* the socket's last errno; 0 = none */
};

/* A BIO over `w`, which must live longer; NULL when memory is out. */
BIO *tls_wire_bio(struct tls_wire *w);

/* Records what OpenSSL complains about, and empties its list; returns `code`. */
int tls_complain(struct err *e, int code, const char *what);

/* A handshake keeps its server. */
struct tls_server *tls_server_ref(struct tls_server *s);
void tls_server_unref(struct tls_server *s); /* accepts NULL */

/* Fresh connections; NULL with a sentence. */
SSL *tls_server_ssl(struct tls_server *s, struct err *e);
SSL *tls_client_ssl(struct tls_client *c, const char *name, struct err *e);
