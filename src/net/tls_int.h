/*
 * net/tls_int.h - what the files of TLS share: contexts, the wire below them, bridges.
 */
#pragma once

#include <openssl/ssl.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "net/tls.h"

struct loop_fd;
struct loop_task;
struct loop_timer;

#define TLS_SCRATCH_BYTES (64u << 10)
#define TLS_PEM_MAX	  (1u << 20)

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

/* Appends a file of at most TLS_PEM_MAX bytes, none of them NUL; *ret_stat tells its version. */
osb_must_check int tls_read_pem(const char *path, struct buf *ret, struct stat *ret_stat,
				struct err *e);
void tls_wipe(struct buf *b); /* buf_done() of what was secret */

/* A handshake keeps its server. */
struct tls_server *tls_server_ref(struct tls_server *s);
void tls_server_unref(struct tls_server *s); /* accepts NULL */

/* Fresh connections; NULL with a sentence. */
SSL *tls_server_ssl(struct tls_server *s, struct err *e);
SSL *tls_client_ssl(struct tls_client *c, const char *name, struct err *e);

struct tls_bridges {
	struct loop *loop;
	struct list list;
	size_t n;
	uint64_t handshake_ms;
	void (*on_empty)(void *arg);
	void *on_empty_arg;
	struct loop_task *empty;
	char *scratch; /* what was read just now; one for all */
};

enum tls_phase { TLS_HANDSHAKE, TLS_OPEN };

struct tls_bridge {
	struct list link;
	struct tls_bridges *all;
	enum tls_phase phase;
	SSL *ssl;
	struct tls_server *server; /* during the handshake of one */
	struct tls_wire wire;
	int plain; /* our end */
	struct loop_fd *wire_watch, *plain_watch;
	struct loop_timer *timer;
	struct loop_task *task;
	tls_done_fn *fn;
	void *arg;
	struct err failure;			   /* found before the handshake began */
	struct buf in;				   /* decrypted, for the plain end */
	struct buf out;				   /* plain, for TLS */
	unsigned in_wants, out_wants, shake_wants; /* of the wire */
	bool in_blocked;			   /* the plain end takes nothing for now */
	bool out_starved;			   /* the plain end has nothing for now */
	bool in_end, out_end;			   /* nothing more comes; what is held goes out */
	bool in_over, out_over;
	bool plain_gone; /* both ways */
	uint64_t moved, moved_before;
};

/* What the wire must be ready for before TLS can go on; 0 = it never will. */
unsigned tls_wants(const struct tls_bridge *b, int result);

enum tls_pump_ways { TLS_PUMP_IN = 1, TLS_PUMP_OUT = 2, TLS_PUMP_BOTH = 3 };

/* These ways until they must wait.  False: the bridge is over. */
bool tls_pump(struct tls_bridge *b, unsigned ways);

/* The plain end gets no more. */
void tls_pump_end_in(struct tls_bridge *b);
