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
#include <sys/socket.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "codec/url.h"
#include "net/http_int.h"
#include "net/loop.h"

#define OUT_MAX		  (256u << 20)
#define IN_MAX		  (512u << 10)
#define READS_PER_TURN	  4
#define REQUESTS_PER_TURN 32
#define DROP_MAX	  (64u << 10) /* of an unwanted body, to keep the connection */
#define LINGER_BYTES_MAX  (256u << 20)
#define LINGER_MS	  5000

static void conn_ready(void *arg, int fd, unsigned events);

/* ---- birth and death ---- */

static void name_peer(struct http_conn *c)
{
	struct sockaddr_storage a;
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

void http_conn_new(struct http_server *s, int fd, bool refuse)
{
	struct http_conn *c = mem_new(struct http_conn);
	struct err e = ERR_NONE;

	c->server = s;
	c->fd = fd;
	c->file_fd = -1;
	c->body_done = true;
	buf_init(&c->in, IN_MAX);
	buf_init(&c->out, OUT_MAX);
	list_init(&c->kick_link);
	if (loop_fd_new(s->loop, fd, conn_ready, c, &c->watch, &e) < 0) {
		fd_close(fd);
		free(c);
		return;
	}
	list_push_back(&s->conns, &c->link);
	s->conns_n++;
	name_peer(c);
	set_deadline(c, s->limits.idle_ms ? s->limits.idle_ms : 0);
	if (refuse) {
		http_conn_enter(c);
		http_out_error(c, 503, "SERVICE_UNAVAILABLE",
			       "too many connections; try again in a moment");
		http_conn_settle(c);
		(void)http_conn_leave(c);
		return;
	}
	loop_fd_want(c->watch, LOOP_READ);
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
static void tell_gone(struct http_conn *c)
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
	if (!c->busy)
		free_conn(c);
}

void http_conn_close(struct http_conn *c)
{
	if (c->dead)
		return;
	http_conn_enter(c);
	c->dead = true; /* first: nobody may come here again from the handler */
	tell_gone(c);
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
		return !c->body_done && !x->body_paused &&
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

static void restart_patience(struct http_conn *c)
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
	restart_patience(c);
}

void http_conn_settle(struct http_conn *c)
{
	if (c->dead)
		return;
	if (c->x && c->x->reply == REPLY_ENDED) {
		end_exchange(c);
		c->phase = c->body_done ? PHASE_HEAD : PHASE_DRAIN;
		c->dropped = 0;
		restart_patience(c);
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

/* ---- heads ---- */

static void refuse(struct http_conn *c, int status, const char *message)
{
	c->body_done = false; /* nothing behind a bad head can be trusted */
	c->rest = VIEW_NONE;
	buf_clear(&c->in);
	http_out_error(c, status, "INVALID_REQUEST", message);
	c->phase = PHASE_DRAIN;
	http_conn_settle(c);
}

static int refusal_status(int code)
{
	switch (-code) {
	case E2BIG:
		return 431;
	case EPROTONOSUPPORT:
		return 505;
	case ENOTSUP:
		return 501;
	default:
		return 400;
	}
}

static struct http_exchange *new_exchange(struct http_conn *c, struct view head, struct err *e)
{
	struct http_exchange *x = mem_alloc(sizeof(*x));
	struct url_target target;
	struct view text;
	int r;

	/* The table of headers is filled by the parser: no need to clear it. */
	memset(x, 0, offsetof(struct http_exchange, head));
	memset(&x->path, 0, sizeof(*x) - offsetof(struct http_exchange, path));
	x->conn = c;
	arena_init(&x->arena, c->server->limits.arena_bytes);
	buf_init(&x->headers, c->server->limits.head_bytes);
	r = arena_view(&x->arena, head, &text);
	if (r == 0)
		r = http1_parse_request(text, &x->head, e);
	if (r == 0 && view_is(x->head.target, "*"))
		target = (struct url_target){.path = x->head.target};
	else if (r == 0 && !url_target_parse(x->head.target, &target))
		r = err_set(e, -EINVAL, "the request's target is malformed");
	if (r < 0) {
		if (e->code == 0)
			err_set(e, r, "the request's head is too large");
		http_exchange_free(x);
		return NULL;
	}
	x->path = target.path;
	x->query = target.query;
	return x;
}

static void begin_exchange(struct http_conn *c, struct http_exchange *x)
{
	const struct http1_head *h = &x->head;

	c->x = x;
	c->phase = PHASE_BUSY;
	c->framing = h->chunked ? FRAMING_CHUNKED : h->has_length ? FRAMING_SIZED : FRAMING_NONE;
	c->body_left = h->has_length ? h->length : 0;
	c->body_done =
		c->framing == FRAMING_NONE || (c->framing == FRAMING_SIZED && c->body_left == 0);
	chunked_init(&c->chunked);
	if (!h->keep_alive)
		c->close_after = true;
	c->deadline_us = 0;
	c->server->handler(x, c->server->app);
}

/* 1 = an exchange has begun, 0 = the head is not complete, -1 = refused. */
static int take_head(struct http_conn *c)
{
	struct err e = ERR_NONE;
	struct http_exchange *x;
	ssize_t n;

	/* An empty line in front of a request is tolerated, as RFC 9112 asks. */
	if (c->scanned == 0 && view_starts(c->rest, VIEW("\r\n")))
		c->rest = view_skip(c->rest, 2);
	n = http1_head_end(c->rest, &c->scanned);
	if (n < 0) {
		refuse(c, 400, "the request's head is malformed");
		return -1;
	}
	if ((n == 0 ? c->rest.len : (size_t)n) > c->server->limits.head_bytes) {
		size_t seen = MIN(c->rest.len, c->server->limits.head_bytes);
		bool in_target = memchr(c->rest.p, '\r', seen) == NULL;

		refuse(c, in_target ? 414 : 431, "the request's head is too large");
		return -1;
	}
	if (n == 0)
		return 0;
	c->scanned = 0;
	x = new_exchange(c, view_first(c->rest, (size_t)n), &e);
	if (!x) {
		refuse(c, refusal_status(e.code), e.msg);
		return -1;
	}
	c->rest = view_skip(c->rest, (size_t)n);
	begin_exchange(c, x);
	return 1;
}

/* ---- bodies ---- */

/* The next piece of the body off the front of the input: 1, 0 = needs more, -errno. */
static int next_piece(struct http_conn *c, struct view *ret, struct err *e)
{
	int r;

	if (c->framing == FRAMING_SIZED) {
		*ret = view_first(c->rest, (size_t)MIN(c->body_left, (uint64_t)c->rest.len));
		c->rest = view_skip(c->rest, ret->len);
		c->body_left -= ret->len;
		c->body_done = c->body_left == 0;
		return ret->len > 0;
	}
	r = chunked_next(&c->chunked, &c->rest, ret, e);
	if (r == CHUNKED_END) {
		c->body_done = true;
		*ret = VIEW_NONE;
	}
	return r < 0 ? r : r == CHUNKED_DATA;
}

static void malformed_body(struct http_conn *c, const struct err *e)
{
	bool begun = c->x && c->x->reply != REPLY_NONE;

	tell_gone(c);
	if (begun)
		http_conn_close(c);
	else
		refuse(c, 400, e->msg);
}

static void too_large(struct http_conn *c)
{
	struct http_exchange *x = c->x;

	x->body_mode = BODY_OVER;
	http_reply_error(x, 413, "REQUEST_TOO_LARGE", "the body is larger than %zu bytes",
			 x->body_max);
}

static void deliver(struct http_conn *c, struct view piece)
{
	struct http_exchange *x = c->x;

	if (x->body_mode == BODY_STREAM) {
		if (piece.len)
			x->body_fn(x, piece, x->body_arg);
		return;
	}
	if (x->collected.len + piece.len > x->body_max || buf_append_view(&x->collected, piece) < 0)
		too_large(c);
}

/* The whole body has come. */
static void deliver_end(struct http_conn *c)
{
	struct http_exchange *x = c->x;
	http_body_fn *fn = x->body_fn;
	enum http_body_mode mode = x->body_mode;

	x->end_told = true;
	x->body_mode = BODY_OVER;
	fn(x, mode == BODY_COLLECT ? buf_view(&x->collected) : VIEW_NONE, x->body_arg);
}

static bool body_wanted(const struct http_conn *c)
{
	const struct http_exchange *x = c->x;

	return x && x->reply != REPLY_ENDED && !x->body_paused && !x->end_told &&
	       (x->body_mode == BODY_COLLECT || x->body_mode == BODY_STREAM);
}

/* Feeds the exchange as long as it wants and there is input.  False: wait for more, or for the
 * handler. */
static bool feed(struct http_conn *c)
{
	struct err e = ERR_NONE;
	struct view piece;
	int r;

	if (!body_wanted(c))
		return false;
	if (c->body_done) {
		deliver_end(c);
		return true;
	}
	r = next_piece(c, &piece, &e);
	if (r < 0) {
		malformed_body(c, &e);
		return false;
	}
	if (r > 0)
		deliver(c, piece);
	return r > 0 || c->body_done;
}

/* Drops the rest of a body whose answer has ended; too much of it ends the connection. */
static bool drop_body(struct http_conn *c)
{
	struct err e = ERR_NONE;
	struct view piece;
	int r = c->body_done ? 0 : next_piece(c, &piece, &e);

	if (r > 0)
		c->dropped += piece.len;
	if (r < 0 || c->dropped > DROP_MAX ||
	    (c->framing == FRAMING_SIZED && c->body_left > DROP_MAX)) {
		c->close_after = true;
		c->rest = VIEW_NONE;
		http_conn_settle(c);
		return false;
	}
	if (c->body_done)
		c->phase = PHASE_HEAD;
	return r > 0 || c->body_done;
}

/* ---- input ---- */

/* One step on c->rest.  False: nothing more can be done with it now. */
static bool step(struct http_conn *c, int *budget)
{
	switch (c->phase) {
	case PHASE_HEAD:
		if (!http_out_empty(c) || c->close_after || *budget <= 0 || c->rest.len == 0)
			return false;
		if (take_head(c) <= 0)
			return false;
		(*budget)--;
		break;
	case PHASE_BUSY:
		if (!feed(c))
			return false;
		break;
	case PHASE_DRAIN:
		if (!drop_body(c))
			return false;
		break;
	case PHASE_LINGER:
		c->dropped += c->rest.len;
		c->rest = VIEW_NONE;
		return false;
	}
	if (!c->dead)
		http_conn_settle(c);
	return !c->dead;
}

/* What cannot be used now is kept; `rest` may lie in `in` itself. */
static void keep_rest(struct http_conn *c)
{
	struct view in = buf_view(&c->in);

	if (in.len && c->rest.p >= in.p && c->rest.p <= in.p + in.len) {
		buf_consume(&c->in, in.len - c->rest.len);
	} else {
		buf_clear(&c->in);
		if (buf_append_view(&c->in, c->rest) < 0)
			c->close_after = true; /* cannot be: no more is read than fits */
	}
	if (c->in.len == 0)
		buf_shrink(&c->in, 0);
	c->rest = VIEW_NONE;
}

static void work(struct http_conn *c, struct view input)
{
	int budget = REQUESTS_PER_TURN;

	http_conn_enter(c);
	c->rest = input;
	while (step(c, &budget))
		;
	if (!c->dead) {
		keep_rest(c);
		if (c->phase == PHASE_HEAD && c->in.len && budget <= 0)
			http_conn_kick(c);
		else if (c->phase == PHASE_HEAD && c->in.len && budget < REQUESTS_PER_TURN)
			restart_patience(
				c); /* the head that follows an exchange has its own clock */
		http_conn_settle(c);
	}
	(void)http_conn_leave(c);
}

void http_conn_run(struct http_conn *c)
{
	if (c->broken)
		http_conn_close(c);
	else
		work(c, buf_view(&c->in));
}

/* The handler has just asked for its body: what came along with the head is there already. */
void http_conn_want_body(struct http_conn *c)
{
	const struct http1_head *h = &c->x->head;

	if (h->expect_continue && !c->body_done && c->in.len == 0 && c->rest.len == 0 &&
	    h->minor >= 1 && c->x->reply == REPLY_NONE) {
		struct iovec iov = {(void *)"HTTP/1.1 100 Continue\r\n\r\n", 25};

		http_out_write(c, &iov, 1);
	}
	if (c->dead)
		return;
	if (!c->busy && (c->in.len || c->body_done))
		http_conn_kick(c);
	restart_patience(c);
	http_conn_update(c);
}

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

/* Reads once.  False: stop for now. */
static bool read_once(struct http_conn *c)
{
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
	if (c->in.len) {
		if (buf_append(&c->in, scratch, (size_t)n) < 0) {
			refuse(c, 431, "the request's head is too large");
			return false;
		}
		work(c, buf_view(&c->in));
	} else {
		bool fresh = c->phase == PHASE_HEAD;

		work(c, view_mem(scratch, (size_t)n));
		/* The clock of a head runs from its first byte. */
		if (fresh && !c->dead && c->phase == PHASE_HEAD && c->in.len)
			restart_patience(c);
	}
	if (!c->dead && c->phase != PHASE_HEAD && c->phase != PHASE_LINGER)
		restart_patience(c);
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
	restart_patience(c);
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

void http_conn_expired(struct http_conn *c)
{
	http_conn_enter(c);
	c->deadline_us = 0;
	if (c->phase == PHASE_HEAD && c->in.len && http_out_empty(c)) {
		refuse(c, 408, "the request's head took too long");
	} else if (c->phase == PHASE_BUSY && !http_out_empty(c)) {
		http_conn_close(c);
	} else if (c->phase == PHASE_BUSY && c->x && c->x->reply == REPLY_NONE) {
		tell_gone(c);
		refuse(c, 408, "the request's body took too long");
	} else {
		http_conn_close(c);
	}
	if (!c->dead)
		http_conn_settle(c);
	(void)http_conn_leave(c);
}
