/*
 * net/tls_pump.c - two one-way pumps: decrypted bytes to the plain end, and plain bytes into TLS.
 *
 * A pump that cannot write stops reading, so that a slow reader slows the other end down.  What was
 * read is written at once if possible; only what is left over is kept.
 */
#include <errno.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include "net/loop.h"
#include "net/tls_int.h"

#define ROUNDS 16 /* per wake-up: one fast pair must not starve the others */

/* What a pump's round came to. */
enum pumped { PUMP_MORE, PUMP_WAIT, PUMP_CUT };

unsigned tls_wants(const struct tls_bridge *b, int result)
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

void tls_pump_end_in(struct tls_bridge *b)
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
	got = SSL_read(b->ssl, b->all->scratch, TLS_SCRATCH_BYTES);
	if (got <= 0) {
		b->in_wants = tls_wants(b, got);
		b->in_end = SSL_get_error(b->ssl, got) == SSL_ERROR_ZERO_RETURN;
		if (b->in_end)
			return PUMP_MORE;
		return b->in_wants ? PUMP_WAIT : PUMP_CUT;
	}
	n = give_plain(b, view_mem(b->all->scratch, (size_t)got));
	if (n < 0) {
		tls_pump_end_in(b);
		return PUMP_WAIT;
	}
	if (n < got && buf_append(&b->in, b->all->scratch + n, (size_t)(got - n)) < 0)
		return PUMP_CUT;
	if (n < got || SSL_has_pending(b->ssl) || b->wire.early.len)
		return PUMP_MORE;
	b->in_wants = LOOP_READ; /* whatever else has come wakes us again */
	return PUMP_WAIT;
}

static enum pumped pump_in(struct tls_bridge *b)
{
	if (b->in.len) {
		ssize_t n = give_plain(b, buf_view(&b->in));

		if (n < 0) {
			tls_pump_end_in(b);
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
		tls_pump_end_in(b);
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
	ssize_t got = recv(b->plain, b->all->scratch, TLS_SCRATCH_BYTES, MSG_DONTWAIT);
	int n;

	if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
		b->out_starved = true;
		return PUMP_WAIT;
	}
	if (got <= 0) {
		b->out_end = true;
		if (got < 0)
			tls_pump_end_in(b); /* it left without reading everything */
		return PUMP_MORE;
	}
	n = write_records(b, view_mem(b->all->scratch, (size_t)got));
	if (n < 0 || (n < got && buf_append(&b->out, b->all->scratch + n, (size_t)(got - n)) < 0))
		return PUMP_CUT;
	/* A short read has emptied the socket. */
	b->out_starved = n == got && got < (ssize_t)TLS_SCRATCH_BYTES;
	return n < got || b->out_starved ? PUMP_WAIT : PUMP_MORE;
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

bool tls_pump(struct tls_bridge *b, unsigned ways)
{
	enum pumped in = PUMP_WAIT, out = PUMP_WAIT;

	if (ways & TLS_PUMP_IN) {
		in = PUMP_MORE;
		b->in_wants = 0;
	}
	if (ways & TLS_PUMP_OUT) {
		out = PUMP_MORE;
		b->out_wants = 0;
		b->out_starved = false;
	}
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
