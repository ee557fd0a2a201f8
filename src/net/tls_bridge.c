/*
 * net/tls_bridge.c - a handshake, then two one-way pumps: decrypted bytes to the plain end, and
 * plain bytes into TLS.
 *
 * A pump that cannot write stops reading, so that a slow reader slows the other end down.  What was
 * read is written at once if possible; only what is left over is kept.
 */
#include <errno.h>
#include <inttypes.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "net/loop.h"
#include "net/tls_int.h"

#define HANDSHAKE_MS  10000
#define FAREWELL_MS   30000 /* the plain end has gone and the peer takes nothing */
#define ROUNDS	      16    /* per wake-up: one fast pair must not starve the others */
#define SCRATCH_BYTES (64u << 10)
#define EARLY_MAX     (64u << 10)

struct tls_bridges {
	struct loop *loop;
	struct list list;
	size_t n;
	uint64_t handshake_ms;
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

/* What a pump's round came to. */
enum pumped { PUMP_MORE, PUMP_WAIT, PUMP_CUT };

/* ---- birth and death ---- */

struct tls_bridges *tls_bridges_new(struct loop *l)
{
	struct tls_bridges *all = mem_new(struct tls_bridges);

	all->loop = l;
	all->handshake_ms = HANDSHAKE_MS;
	all->scratch = mem_alloc(SCRATCH_BYTES);
	list_init(&all->list);
	return all;
}

void tls_bridges_patience(struct tls_bridges *all, uint64_t handshake_ms)
{
	all->handshake_ms = handshake_ms;
}

size_t tls_bridges_count(const struct tls_bridges *all)
{
	return all->n;
}

static void bridge_free(struct tls_bridge *b)
{
	list_remove(&b->link);
	b->all->n--;
	loop_fd_free(b->wire_watch);
	loop_fd_free(b->plain_watch);
	loop_timer_free(b->timer);
	loop_task_free(b->task);
	SSL_free(b->ssl);
	tls_server_unref(b->server);
	fd_close(b->wire.fd);
	fd_close(b->plain);
	buf_done(&b->wire.early);
	buf_done(&b->in);
	buf_done(&b->out);
	free(b);
}

void tls_cancel(struct tls_bridge *b)
{
	if (b)
		bridge_free(b);
}

void tls_bridges_free(struct tls_bridges *all)
{
	if (!all)
		return;
	list_each_safe (it, tmp, &all->list)
		bridge_free(list_entry(it, struct tls_bridge, link));
	free(all->scratch);
	free(all);
}

/* ---- pumps ---- */

/* What the wire must be ready for before TLS can go on; 0 = it never will. */
static unsigned tls_wants(const struct tls_bridge *b, int result)
{
	switch (SSL_get_error(b->ssl, result)) {
	case SSL_ERROR_WANT_READ:
		return LOOP_READ;
	case SSL_ERROR_WANT_WRITE:
		return LOOP_WRITE;
	default:
		return 0;
	}
}

/* Bytes that the plain end took of `bytes`; -errno if it takes none any more. */
static ssize_t give_plain(struct tls_bridge *b, struct view bytes)
{
	ssize_t n = send(b->plain, bytes.p, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		n = 0;
	if (n > 0)
		b->moved += (size_t)n;
	return n < 0 ? -errno : n;
}

static void end_in(struct tls_bridge *b)
{
	b->in_over = true;
	b->in_blocked = false;
	b->in_wants = 0;
	buf_done(&b->in);
}

/* Decrypts a record and gives it away. */
static enum pumped read_record(struct tls_bridge *b)
{
	int got;
	ssize_t n;

	ERR_clear_error();
	got = SSL_read(b->ssl, b->all->scratch, SCRATCH_BYTES);
	if (got <= 0) {
		b->in_wants = tls_wants(b, got);
		b->in_end = SSL_get_error(b->ssl, got) == SSL_ERROR_ZERO_RETURN;
		if (b->in_end)
			return PUMP_MORE;
		return b->in_wants ? PUMP_WAIT : PUMP_CUT;
	}
	n = give_plain(b, view_mem(b->all->scratch, (size_t)got));
	if (n < 0) {
		end_in(b);
		return PUMP_WAIT;
	}
	if (n < got && buf_append(&b->in, b->all->scratch + n, (size_t)(got - n)) < 0)
		return PUMP_CUT;
	return PUMP_MORE;
}

static enum pumped pump_in(struct tls_bridge *b)
{
	if (b->in.len) {
		ssize_t n = give_plain(b, buf_view(&b->in));

		if (n < 0) {
			end_in(b);
			return PUMP_WAIT;
		}
		buf_consume(&b->in, (size_t)n);
		b->in_blocked = b->in.len > 0;
		if (!b->in.len)
			buf_done(&b->in);
		return b->in_blocked ? PUMP_WAIT : PUMP_MORE;
	}
	if (b->in_end) {
		(void)shutdown(b->plain, SHUT_WR);
		end_in(b);
		return PUMP_WAIT;
	}
	return read_record(b);
}

/* Encrypts what it can of `bytes`: how much, 0 = must wait, -1 = the connection has failed. */
static int write_records(struct tls_bridge *b, struct view bytes)
{
	int done = 0;

	while ((size_t)done < bytes.len) {
		int n;

		ERR_clear_error();
		n = SSL_write(b->ssl, bytes.p + done, (int)(bytes.len - (size_t)done));
		if (n <= 0) {
			b->out_wants = tls_wants(b, n);
			return b->out_wants ? done : -1;
		}
		done += n;
		b->moved += (size_t)n;
	}
	return done;
}

static enum pumped say_goodbye(struct tls_bridge *b)
{
	int r;

	ERR_clear_error();
	r = SSL_shutdown(b->ssl);
	if (r < 0) {
		b->out_wants = tls_wants(b, r);
		return b->out_wants ? PUMP_WAIT : PUMP_CUT;
	}
	(void)shutdown(b->wire.fd, SHUT_WR);
	b->out_over = true;
	return PUMP_WAIT;
}

static enum pumped read_plain(struct tls_bridge *b)
{
	ssize_t got = recv(b->plain, b->all->scratch, SCRATCH_BYTES, MSG_DONTWAIT);
	int n;

	if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
		b->out_starved = true;
		return PUMP_WAIT;
	}
	if (got <= 0) {
		b->out_end = true;
		if (got < 0)
			end_in(b); /* it left without reading everything */
		return PUMP_MORE;
	}
	n = write_records(b, view_mem(b->all->scratch, (size_t)got));
	if (n < 0 || (n < got && buf_append(&b->out, b->all->scratch + n, (size_t)(got - n)) < 0))
		return PUMP_CUT;
	return n < got ? PUMP_WAIT : PUMP_MORE;
}

static enum pumped pump_out(struct tls_bridge *b)
{
	if (b->out.len) {
		int n = write_records(b, buf_view(&b->out));

		if (n < 0)
			return PUMP_CUT;
		buf_consume(&b->out, (size_t)n);
		if (b->out.len)
			return PUMP_WAIT;
		buf_done(&b->out);
		return PUMP_MORE;
	}
	return b->out_end ? say_goodbye(b) : read_plain(b);
}

/* Both pumps until they must wait.  False: the bridge is over. */
static bool pump_both(struct tls_bridge *b)
{
	enum pumped in = PUMP_MORE, out = PUMP_MORE;

	b->in_wants = b->out_wants = 0;
	b->out_starved = false;
	for (int i = 0; i < ROUNDS && (in == PUMP_MORE || out == PUMP_MORE); i++) {
		if (in == PUMP_MORE)
			in = b->in_over ? PUMP_WAIT : pump_in(b);
		if (out == PUMP_MORE)
			out = b->out_over ? PUMP_WAIT : pump_out(b);
		if (in == PUMP_CUT || out == PUMP_CUT)
			return false;
	}
	/* What TLS holds decrypted wakes nobody. */
	if (in == PUMP_MORE || out == PUMP_MORE)
		loop_task_post(b->task);
	return !(b->out_over && (b->in_over || b->plain_gone));
}

/* ---- wake-ups ---- */

/* A side that is not read from is watched for its hang-up; when we have ended our part of the
 * wire's connection, the peer's end is a hang-up too, before everything of it was read. */
static void update_wants(struct tls_bridge *b)
{
	unsigned wire = b->in_wants | b->out_wants | b->shake_wants, plain = 0;

	if (!(wire & LOOP_READ) && !b->out_over)
		wire |= LOOP_HANGUP;
	loop_fd_want(b->wire_watch, wire);
	if (!b->plain_watch)
		return;
	plain |= b->out_starved ? LOOP_READ : 0u;
	plain |= b->in_blocked ? LOOP_WRITE : 0u;
	if (!(plain & LOOP_READ) && !b->plain_gone)
		plain |= LOOP_HANGUP;
	loop_fd_want(b->plain_watch, plain);
}

static void run(struct tls_bridge *b)
{
	if (pump_both(b))
		update_wants(b);
	else
		bridge_free(b);
}

/* Nobody is there any more to stop waiting for a peer that takes nothing. */
static void farewell_late(void *arg)
{
	struct tls_bridge *b = arg;

	if (b->moved == b->moved_before) {
		bridge_free(b);
		return;
	}
	b->moved_before = b->moved;
	loop_timer_start(b->timer, FAREWELL_MS);
}

static void plain_ready(void *arg, int fd, unsigned events)
{
	struct tls_bridge *b = arg;

	if (events & LOOP_HANGUP) {
		b->plain_gone = true;
		end_in(b);
		b->moved_before = b->moved;
		b->timer = b->timer ? b->timer : loop_timer_new(b->all->loop, farewell_late, b);
		loop_timer_start(b->timer, FAREWELL_MS);
	}
	run(b);
}

/* ---- the handshake ---- */

/* Ends the bridge; its owner learns why. */
static void fail(struct tls_bridge *b, const struct err *why)
{
	tls_done_fn *fn = b->fn;
	void *arg = b->arg;
	struct err e = *why;

	bridge_free(b);
	fn(arg, -1, &e);
}

static void shake_late(void *arg)
{
	struct tls_bridge *b = arg;
	struct err e = ERR_NONE;

	(void)err_set(&e, -ETIMEDOUT, "the TLS handshake took longer than %" PRIu64 " ms",
		      b->all->handshake_ms);
	fail(b, &e);
}

/* Whoever speaks HTTP here is told in HTTP. */
static void answer_plain_http(const struct tls_bridge *b)
{
	static const char text[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n"
				   "Content-Length: 24\r\nConnection: close\r\n\r\n"
				   "This port speaks https.\n";

	(void)send(b->wire.fd, text, sizeof(text) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void shake_failed(struct tls_bridge *b)
{
	long verdict = SSL_get_verify_result(b->ssl);
	struct err e = ERR_NONE;

	if (SSL_is_server(b->ssl) && ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST)
		answer_plain_http(b);
	if (!SSL_is_server(b->ssl) && verdict != X509_V_OK)
		(void)err_set(&e, -EACCES, "the certificate is not good: %s",
			      X509_verify_cert_error_string(verdict));
	else if (ERR_peek_error())
		(void)tls_complain(&e, -EPROTO, "TLS handshake");
	else if (b->wire.error)
		(void)err_set(&e, -b->wire.error, "TLS handshake: %s", strerror(b->wire.error));
	else
		(void)err_set(&e, -ECONNRESET, "the connection ended during the TLS handshake");
	ERR_clear_error();
	fail(b, &e);
}

/* The handshake is done: gives the plain end out. */
static void open_plain(struct tls_bridge *b)
{
	tls_done_fn *fn = b->fn;
	void *arg = b->arg;
	struct err e = ERR_NONE;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0) {
		(void)err_set(&e, -errno, "make a socket pair: %m");
		fail(b, &e);
		return;
	}
	b->plain = ends[0];
	if (loop_fd_new(b->all->loop, b->plain, plain_ready, b, &b->plain_watch, &e) < 0) {
		fd_close(ends[1]);
		fail(b, &e);
		return;
	}
	b->phase = TLS_OPEN;
	b->shake_wants = 0;
	loop_timer_free(take_ptr(b->timer));
	tls_server_unref(take_ptr(b->server));
	loop_task_post(b->task); /* the owner may end everything in the callback */
	fn(arg, ends[1], &e);
}

static void shake(struct tls_bridge *b)
{
	int r;

	ERR_clear_error();
	r = SSL_do_handshake(b->ssl);
	if (r == 1) {
		open_plain(b);
		return;
	}
	b->shake_wants = tls_wants(b, r);
	if (b->shake_wants)
		update_wants(b);
	else
		shake_failed(b);
}

static void wire_ready(void *arg, int fd, unsigned events)
{
	struct tls_bridge *b = arg;

	if (b->phase == TLS_HANDSHAKE)
		shake(b);
	else if (events & LOOP_HANGUP)
		bridge_free(b); /* what it sent before is lost with its connection */
	else
		run(b);
}

static void on_task(void *arg)
{
	struct tls_bridge *b = arg;

	if (b->phase == TLS_OPEN)
		run(b);
	else if (b->failure.code)
		fail(b, &b->failure);
	else
		shake(b);
}

/* ---- beginnings ---- */

static void set_up(struct tls_bridge *b)
{
	BIO *bio = tls_wire_bio(&b->wire);

	if (!bio) {
		(void)tls_complain(&b->failure, -ENOMEM, "begin a TLS connection");
		return;
	}
	SSL_set_bio(b->ssl, bio, bio);
	if (loop_fd_new(b->all->loop, b->wire.fd, wire_ready, b, &b->wire_watch, &b->failure) < 0)
		return;
	loop_timer_start(b->timer, b->all->handshake_ms);
}

static struct tls_bridge *bridge_new(struct tls_bridges *all, int fd, tls_done_fn *fn, void *arg)
{
	struct tls_bridge *b = mem_new(struct tls_bridge);

	b->all = all;
	b->wire.fd = fd;
	b->plain = -1;
	b->fn = fn;
	b->arg = arg;
	b->timer = loop_timer_new(all->loop, shake_late, b);
	b->task = loop_task_new(all->loop, on_task, b);
	buf_init(&b->wire.early, EARLY_MAX);
	buf_init(&b->in, SCRATCH_BYTES);
	buf_init(&b->out, SCRATCH_BYTES);
	list_push_back(&all->list, &b->link);
	all->n++;
	loop_task_post(b->task);
	return b;
}

struct tls_bridge *tls_accept(struct tls_bridges *all, struct tls_server *s, int fd,
			      struct view early, tls_done_fn *fn, void *arg)
{
	struct tls_bridge *b = bridge_new(all, fd, fn, arg);

	b->server = tls_server_ref(s);
	b->ssl = tls_server_ssl(s, &b->failure);
	if (b->ssl && buf_append_view(&b->wire.early, early) < 0)
		(void)err_set(&b->failure, -E2BIG, "a ClientHello of more than %u bytes",
			      EARLY_MAX);
	else if (b->ssl)
		set_up(b);
	return b;
}

struct tls_bridge *tls_connect(struct tls_bridges *all, struct tls_client *c, int fd,
			       const char *name, tls_done_fn *fn, void *arg)
{
	struct tls_bridge *b = bridge_new(all, fd, fn, arg);

	b->ssl = tls_client_ssl(c, name, &b->failure);
	if (b->ssl)
		set_up(b);
	return b;
}
