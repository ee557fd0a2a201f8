/*
 * net/tls.h - TLS as a bridge: whoever speaks HTTP reads and writes a plain socket, the other end
 * of which is encrypted in this process.
 *
 * A bridge couples an encrypted connection with one end of a socketpair; the other end is given
 * out.  Back-pressure, half-closes and ends pass through it both ways; it frees itself when
 * both sides have ended.  A peer that ends without saying so in TLS has ended all the same: whether
 * anything is missing is for HTTP to tell.  Nothing here blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct err;
struct loop;
struct tls_bridge;  /* one of them */
struct tls_bridges; /* all that are under way, so that their owner can end them */
struct tls_server;
struct tls_client;

struct tls_bridges *tls_bridges_new(struct loop *l);
void tls_bridges_free(struct tls_bridges *all); /* accepts NULL; cuts them, no callback follows */
size_t tls_bridges_count(const struct tls_bridges *all);

/* Calls fn(arg) once there is none, soon if there is none already; never from within this call. */
void tls_bridges_on_empty(struct tls_bridges *all, void (*fn)(void *arg), void *arg);

/* How long a handshake may take from now on: 10 seconds if nothing was said. */
void tls_bridges_patience(struct tls_bridges *all, uint64_t handshake_ms);

/* ---- servers ---- */

/* A certificate chain and its key from files, read again by tls_server_reload(): -errno with a
 * sentence leaves the old ones in use.  TLS 1.2 and later, ALPN "http/1.1". */
osb_must_check int tls_server_new(const char *cert_file, const char *key_file,
				  struct tls_server **ret, struct err *e);
osb_must_check int tls_server_reload(struct tls_server *s, struct err *e);
void tls_server_free(struct tls_server *s); /* accepts NULL; bridges live on */

/* The same from PEM text, for those who cannot see the files. */
osb_must_check int tls_server_new_pem(struct view cert, struct view key, struct tls_server **ret,
				      struct err *e);
osb_must_check int tls_server_use_pem(struct tls_server *s, struct view cert, struct view key,
				      struct err *e);

/* Until when the certificate is good: seconds since 1970. */
int64_t tls_server_until(const struct tls_server *s);

/* Or a certificate for each name, as it is asked for: `find` returns a context that the callee
 * keeps (an SSL_CTX *, borrowed for the handshake; its certificate, chain and key are used, nothing
 * else of it), NULL ends the connection.  `server_name` is NULL if the client named none. */
typedef void *tls_find_fn(void *arg, const char *server_name);
osb_must_check int tls_server_new_found(tls_find_fn *find, void *arg, struct tls_server **ret,
					struct err *e);

/*
 * Begins the handshake on `fd` (taken, non-blocking; `early` are bytes that were read from it
 * already).  The plain end (non-blocking, now the callee's) is called back once the handshake is
 * done, never from within this call: fd -1 and a sentence if it failed, or took too
 * long.  The bridge that is returned may be cancelled until then; after that it is on its own.
 */
typedef void tls_done_fn(void *arg, int plain_fd, const struct err *e);
struct tls_bridge *tls_accept(struct tls_bridges *all, struct tls_server *s, int fd,
			      struct view early, tls_done_fn *fn, void *arg);
void tls_cancel(struct tls_bridge *b); /* accepts NULL; no callback follows */

/* ---- clients ---- */

/* Verifies with the system's authorities and, if given, those in a PEM file or a directory of
 * them.  All are read now: whoever loses sight of its files can still verify. */
osb_must_check int tls_client_new(const char *ca_path, struct tls_client **ret, struct err *e);
void tls_client_free(struct tls_client *c); /* accepts NULL; bridges live on */

/* The same towards a server called `name` (verified, and sent as SNI; an address is verified as
 * such). */
struct tls_bridge *tls_connect(struct tls_bridges *all, struct tls_client *c, int fd,
			       const char *name, tls_done_fn *fn, void *arg);
