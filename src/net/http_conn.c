/*
 * net/http_conn.c - one connection: heads and bodies in, exchanges one after the other.
 *
 * Input is read into the server's scratch buffer and worked on in place; only what cannot be used
 * yet is kept.  While an exchange does not ask for its body the socket is not read: the client's
 * bytes wait in the kernel.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "net/http_int.h"
#include "net/loop.h"

#define OUT_MAX		 (256u << 20)
#define IN_MAX		 (512u << 10)
#define READS_PER_TURN	 4
#define LINGER_BYTES_MAX (256u << 20)
#define LINGER_MS	 5000

static void conn_ready(void *arg, int fd, unsigned events);

/* ---- birth and death ---- */

static void name_peer(struct http_conn *c)
{
	struct sockaddr_storage a = {0};
	socklen_t len = sizeof(a);

	if (getpeername(c->fd, (struct sockaddr *)&a, &len) < 0)
		return;
	if (a.ss_family == AF_INET)
		inet_ntop(AF_INET, &((struct sockaddr_in *)&a)->sin_addr, c->peer, sizeof(c->peer));
	else if (a.ss_family == AF_INET6)
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&a)->sin6_addr, c->peer,
			  sizeof(c->peer));
}

static void set_deadline(struct http_conn *c, uint64_t ms)
{
	c->deadline_us = ms ? loop_now_us(c->server->loop) + ms * 1000 : 0;
	http_server_deadline(c->server, c->deadline_us);
}

struct http_conn *http_conn_new(struct http_server *s, int fd, const char *peer, unsigned flags)
{
	struct http_conn *c = mem_new(struct http_conn);
	struct err e = ERR_NONE;

	c->server = s;
	c->fd = fd;
	c->file_fd = -1;
	c->body_done = true;
	c->secure = flags & HTTP_CONN_SECURE;
	buf_init(&c->in, IN_MAX);
	c->in.secret = s->limits.secret;
	buf_init(&c->out, OUT_MAX);
	list_init(&c->kick_link);
	if (loop_fd_new(s->loop, fd, conn_ready, c, &c->watch, &e) < 0) {
		fd_close(fd);
		free(c);
		return NULL;
	}
	list_push_back(&s->conns, &c->link);
	s->conns_n++;
	if (peer)
		snprintf(c->peer, sizeof(c->peer), "%s", peer);
	else
		name_peer(c);
	set_deadline(c, s->limits.idle_ms ? s->limits.idle_ms : 0);
	if (flags & HTTP_CONN_REFUSE) {
		http_conn_enter(c);
		http_out_error(c, 503, "SERVICE_UNAVAILABLE",
			       "too many connections; try again in a moment");
		http_conn_settle(c);
		(void)http_conn_leave(c);
		return NULL;
	}
	loop_fd_want(c->watch, LOOP_READ);
	return c;
}

static void free_conn(struct http_conn *c)
{
	buf_done(&c->in);
	buf_done(&c->out);
	free(c);
}

static void end_exchange(struct http_conn *c)
{
	struct http_exchange *x = take_ptr(c->x);

	if (x)
		http_exchange_free(x);
}

/* The handler learns once that its client has gone; the exchange is over with that. */
void http_conn_tell_gone(struct http_conn *c)
{
	struct http_exchange *x = take_ptr(c->x);

	if (!x)
		return;
	if (x->gone && x->reply != REPLY_ENDED)
		x->gone(x, x->gone_arg);
	http_exchange_free(x);
}

static void bury(struct http_conn *c)
{
	c->dead = true;
	loop_fd_free(take_ptr(c->watch)); /* before the fd goes */
	c->fd = fd_close(c->fd);
	c->file_fd = fd_close(c->file_fd);
	http_server_forget(c);
	if (c->closed)
		c->closed(c->owner);
	if (!c->busy)
		free_conn(c);
}

void http_conn_close(struct http_conn *c)
{
	if (c->dead)
		return;
	http_conn_enter(c);
	c->dead = true; /* first: nobody may come here again from the handler */
	http_conn_tell_gone(c);
	c->busy--;
	bury(c);
}

void http_conn_detach(struct http_conn *c)
{
	end_exchange(c);
	c->fd = -1;
	bury(c);
}

void http_conn_enter(struct http_conn *c)
{
	c->busy++;
}

/* The memory of a dead connection goes when nobody on the stack uses it any more. */
bool http_conn_leave(struct http_conn *c)
{
	c->busy--;
	if (!c->dead)
		return true;
	if (!c->busy)
		free_conn(c);
	return false;
}

/* ---- what to wait for ---- */

static bool wants_input(const struct http_conn *c)
{
	const struct http_exchange *x = c->x;

	if (c->no_more_input || c->broken)
		return false;
	switch (c->phase) {
	case PHASE_HEAD:
		return http_out_empty(c) && list_empty(&c->kick_link);
	case PHASE_BUSY:
		return x && !c->body_done && !x->body_paused &&
		       (x->body_mode == BODY_COLLECT || x->body_mode == BODY_STREAM);
	case PHASE_DRAIN:
	case PHASE_LINGER:
		return true;
	}
	return false;
}

static uint64_t patience_ms(const struct http_conn *c)
{
	const struct http_limits *l = &c->server->limits;

	if (c->phase == PHASE_LINGER)
		return LINGER_MS;
	if (!http_out_empty(c))
		return l->write_stall_ms;
	if (c->phase == PHASE_HEAD)
		return c->in.len ? l->head_ms : l->idle_ms;
	return wants_input(c) ? l->body_stall_ms : 0;
}

void http_conn_update(struct http_conn *c)
{
	unsigned want = 0;

	if (c->dead)
		return;
	if (wants_input(c))
		want |= LOOP_READ;
	if (!http_out_empty(c))
		want |= LOOP_WRITE;
	/* A client that leaves while nothing is wanted from it is noticed by its hang-up. */
	if (!(want & LOOP_READ))
		want |= LOOP_HANGUP;
	loop_fd_want(c->watch, want);
}

void http_conn_restart_patience(struct http_conn *c)
{
	if (!c->dead)
		set_deadline(c, patience_ms(c));
}

/* ---- the end of an exchange ---- */

static void linger(struct http_conn *c)
{
	c->phase = PHASE_LINGER;
	c->dropped = 0;
	buf_clear(&c->in);
	c->rest = VIEW_NONE;
	(void)shutdown(c->fd, SHUT_WR);
}

/* The last answer is out.  What the client may still send would reset the connection and take the
 * answer along, so its end is awaited for a moment. */
static void end_connection(struct http_conn *c)
{
	if (c->no_more_input || c->server->draining) {
		http_conn_close(c);
		return;
	}
	linger(c);
	http_conn_restart_patience(c);
}

void http_conn_settle(struct http_conn *c)
{
	if (c->dead)
		return;
	if (c->x && c->x->reply == REPLY_ENDED) {
		end_exchange(c);
		c->phase = c->body_done ? PHASE_HEAD : PHASE_DRAIN;
		c->dropped = 0;
		http_conn_restart_patience(c);
	}
	if (c->broken && !c->x) {
		http_conn_close(c);
		return;
	}
	if (!c->x && c->close_after && c->phase != PHASE_LINGER && http_out_empty(c))
		end_connection(c);
	http_conn_update(c);
}

void http_conn_kick(struct http_conn *c)
{
	if (c->dead || !list_empty(&c->kick_link))
		return;
	list_push_back(&c->server->kicked, &c->kick_link);
	loop_task_post(c->server->kick);
}

/* ---- wake-ups ---- */

/* The client sends no more. */
static void input_ended(struct http_conn *c)
{
	c->no_more_input = true;
	if (c->phase == PHASE_BUSY && !c->body_done) {
		http_conn_close(c); /* its body will never be complete */
		return;
	}
	if (c->phase != PHASE_BUSY && http_out_empty(c)) {
		http_conn_close(c);
		return;
	}
	c->close_after = true;
	http_conn_update(c);
}

static void work_on(struct http_conn *c, struct view said)
{
	if (c->in.len) {
		if (buf_append_view(&c->in, said) < 0)
			http_input_refuse(c, 431, "the request's head is too large");
		else
			http_input_work(c, buf_view(&c->in));
	} else {
		bool fresh = c->phase == PHASE_HEAD;

		http_input_work(c, said);
		/* The clock of a head runs from its first byte. */
		if (fresh && !c->dead && c->phase == PHASE_HEAD && c->in.len)
			http_conn_restart_patience(c);
	}
}

/* Reads once.  False: stop for now. */
static bool read_once(struct http_conn *c)
{
	bool secret = c->server->limits.secret;
	size_t size;
	char *scratch = http_server_scratch(c->server, &size);
	ssize_t n;

	n = recv(c->fd, scratch, c->in.len ? MIN(size, (size_t)65536) : size, MSG_DONTWAIT);
	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0) {
		if (errno != EAGAIN)
			http_conn_close(c);
		return false;
	}
	if (n == 0) {
		input_ended(c);
		return false;
	}
	if (c->phase == PHASE_LINGER) {
		c->dropped += (size_t)n;
		if (c->dropped > LINGER_BYTES_MAX)
			http_conn_close(c);
		return !c->dead;
	}
	work_on(c, view_mem(scratch, (size_t)n));
	if (secret)
		explicit_bzero(scratch, (size_t)n);
	if (!c->dead && c->phase != PHASE_HEAD && c->phase != PHASE_LINGER)
		http_conn_restart_patience(c);
	/* A short read has emptied the socket. */
	return !c->dead && (size_t)n == size && wants_input(c);
}

static void output_possible(struct http_conn *c)
{
	struct http_exchange *x;

	http_out_flush(c);
	if (c->broken) {
		http_conn_close(c);
		return;
	}
	x = c->x;
	if (x && x->over_mark && c->out.len < c->server->limits.queue_high_bytes / 2) {
		x->over_mark = false;
		if (x->drained && x->reply == REPLY_BEGUN)
			x->drained(x, x->drained_arg);
	}
	if (c->dead)
		return;
	http_conn_restart_patience(c);
	http_conn_settle(c);
	if (!c->dead && c->in.len)
		http_conn_kick(c);
}

static void conn_ready(void *arg, int fd, unsigned events)
{
	struct http_conn *c = arg;

	(void)fd;
	http_conn_enter(c);
	if (events & LOOP_HANGUP) {
		http_conn_close(c);
		(void)http_conn_leave(c);
		return;
	}
	if (events & LOOP_WRITE)
		output_possible(c);
	if (!c->dead && (events & LOOP_READ) && wants_input(c))
		for (int i = 0; i < READS_PER_TURN && read_once(c); i++)
			;
	if (!c->dead)
		http_conn_update(c);
	(void)http_conn_leave(c);
}

/* Timers come before input: after a pause of the whole sandbox, or on a busy machine, what was
 * waited for may be there. */
static bool input_waits(const struct http_conn *c)
{
	int n = 0;

	return wants_input(c) && ioctl(c->fd, FIONREAD, &n) == 0 && n > 0;
}

void http_conn_expired(struct http_conn *c)
{
	http_conn_enter(c);
	c->deadline_us = 0;
	if (c->phase != PHASE_LINGER && input_waits(c)) {
		set_deadline(c, /* ms= */ 1);
	} else if (c->phase == PHASE_HEAD && c->in.len && http_out_empty(c)) {
		http_input_refuse(c, 408, "the request's head took too long");
	} else if (c->phase == PHASE_BUSY && !http_out_empty(c)) {
		http_conn_close(c);
	} else if (c->phase == PHASE_BUSY && c->x && c->x->reply == REPLY_NONE) {
		http_conn_tell_gone(c);
		http_input_refuse(c, 408, "the request's body took too long");
	} else {
		http_conn_close(c);
	}
	if (!c->dead)
		http_conn_settle(c);
	(void)http_conn_leave(c);
}
