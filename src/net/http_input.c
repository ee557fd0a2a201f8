/*
 * net/http_input.c - what a connection has read becomes heads, exchanges and bodies.
 *
 * Works on `rest`, the part of the input that is not used yet; what cannot be used now is kept for
 * later.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/url.h"
#include "net/http_int.h"

#define REQUESTS_PER_TURN 32
#define DROP_MAX	  (64u << 10) /* of an unwanted body, to keep the connection */

/* ---- heads ---- */

void http_input_refuse(struct http_conn *c, int status, const char *message)
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
	struct http_exchange *x = http_exchange_new(c);
	struct url_target target;
	struct view text;
	int r;

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
		http_input_refuse(c, 400, "the request's head is malformed");
		return -1;
	}
	if ((n == 0 ? c->rest.len : (size_t)n) > c->server->limits.head_bytes) {
		size_t seen = MIN(c->rest.len, c->server->limits.head_bytes);
		bool in_target = memchr(c->rest.p, '\r', seen) == NULL;

		http_input_refuse(c, in_target ? 414 : 431, "the request's head is too large");
		return -1;
	}
	if (n == 0)
		return 0;
	c->scanned = 0;
	x = new_exchange(c, view_first(c->rest, (size_t)n), &e);
	if (!x) {
		http_input_refuse(c, refusal_status(e.code), e.msg);
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

	http_conn_tell_gone(c);
	if (begun)
		http_conn_close(c);
	else
		http_input_refuse(c, 400, e->msg);
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

/* ---- the whole ---- */

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

void http_input_work(struct http_conn *c, struct view input)
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
			http_conn_restart_patience(c);
		http_conn_settle(c);
	}
	(void)http_conn_leave(c);
}

void http_conn_run(struct http_conn *c)
{
	if (c->broken)
		http_conn_close(c);
	else
		http_input_work(c, buf_view(&c->in));
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
	http_conn_restart_patience(c);
	http_conn_update(c);
}
