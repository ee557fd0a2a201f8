/*
 * net/tls_bridge.c - a bridge from its handshake to its end, and what wakes it.
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

#define HANDSHAKE_MS 10000
#define FAREWELL_MS  30000 /* the plain end has gone and the peer takes nothing */
#define EARLY_MAX    (64u << 10)

/* ---- birth and death ---- */

static void tell_empty(void *arg)
{
	struct tls_bridges *all = arg;
	void (*fn)(void *arg) = NULL;

	if (all->n)
		return; /* another has begun meanwhile */
	fn = take_ptr(all->on_empty);
	if (fn)
		fn(all->on_empty_arg);
}

struct tls_bridges *tls_bridges_new(struct loop *l)
{
	struct tls_bridges *all = mem_new(struct tls_bridges);

	all->loop = l;
	all->handshake_ms = HANDSHAKE_MS;
	all->scratch = mem_alloc(TLS_SCRATCH_BYTES);
	list_init(&all->list);
	all->empty = loop_task_new(l, tell_empty, all);
	return all;
}

void tls_bridges_on_empty(struct tls_bridges *all, void (*fn)(void *arg), void *arg)
{
	all->on_empty = fn;
	all->on_empty_arg = arg;
	if (!all->n)
		loop_task_post(all->empty);
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
	if (--b->all->n == 0)
		loop_task_post(b->all->empty);
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
	loop_task_free(all->empty);
	free(all->scratch);
	free(all);
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

static void run(struct tls_bridge *b, unsigned ways)
{
	if (tls_pump(b, ways))
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
	unsigned ways = 0;

	ways |= events & LOOP_READ ? TLS_PUMP_OUT : 0u;
	ways |= events & LOOP_WRITE ? TLS_PUMP_IN : 0u;
	if (events & LOOP_HANGUP) {
		ways = TLS_PUMP_BOTH;
		b->plain_gone = true;
		tls_pump_end_in(b);
		b->moved_before = b->moved;
		b->timer = b->timer ? b->timer : loop_timer_new(b->all->loop, farewell_late, b);
		loop_timer_start(b->timer, FAREWELL_MS);
	}
	run(b, ways);
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
	unsigned ways = 0;

	ways |= events & b->in_wants ? TLS_PUMP_IN : 0u;
	ways |= events & b->out_wants ? TLS_PUMP_OUT : 0u;
	if (b->phase == TLS_HANDSHAKE)
		shake(b);
	else if (events & LOOP_HANGUP)
		bridge_free(b); /* what it sent before is lost with its connection */
	else
		run(b, ways);
}

static void on_task(void *arg)
{
	struct tls_bridge *b = arg;

	if (b->phase == TLS_OPEN)
		run(b, TLS_PUMP_BOTH);
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
	buf_init(&b->in, TLS_SCRATCH_BYTES);
	buf_init(&b->out, TLS_SCRATCH_BYTES);
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
