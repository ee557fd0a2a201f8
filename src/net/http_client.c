/*
 * net/http_client.c - one request, one connection, one answer; a connection may have several lives.
 *
 * No callback is made from inside a function of this file that the owner calls; what must be told
 * then is told by `task`.
 */
#include "net/http_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "codec/http_answer.h"
#include "net/connect.h"
#include "net/http_request.h"
#include "net/loop.h"
#include "net/sendq.h"

#define HEAD_MAX    (128 * 1024) /* of a request */
#define HEAD_USUAL  1024	 /* room that is made at once */
#define READ_FIRST  (8 * 1024)	 /* most answers are small; this much is kept between two lives */
#define READ_BYTES  (64 * 1024)
#define QUEUE_HIGH  (256 * 1024)
#define QUEUE_MAX   (64 * 1024 * 1024)
#define READ_ROUNDS 8 /* per wake-up: a fast server must not starve the others */

enum call_state { CALL_CONNECTING, CALL_OPEN, CALL_OVER, CALL_RESTING };

struct http_call {
	struct loop *loop;
	const struct http_call_events *events;
	void *arg;
	enum call_state state;
	int fd;
	struct loop_fd *watch;
	struct connect *connect;
	struct loop_timer *timer; /* idle timeout */
	struct loop_task *task;
	uint64_t idle_us;
	uint64_t last_us; /* when bytes moved */
	uint64_t due_us;  /* when the timer fires, while it runs */
	bool paused;
	bool busy;  /* one of our loop callbacks runs: memory is kept until it returns */
	bool freed; /* by the owner, meanwhile */
	struct err failure;
	void (*broken)(void *arg); /* CALL_RESTING: the server has closed it, or speaks unasked */

	/* request */
	struct sendq out;
	bool chunks;
	bool write_broken; /* the server reads no more; its answer may still come */
	int write_error;   /* then: why */
	bool over_mark;
	unsigned format;
	bool keeps;   /* wants the connection to outlive the answer */
	bool unended; /* a chunked request has not ended */
	uint64_t request_left;

	/* answer */
	struct http_answer answer;
	bool silent;   /* nothing has come yet */
	bool reusable; /* the answer is complete, and another may follow it */
};

static void update_wants(struct http_call *c)
{
	unsigned want = 0;

	if (!c->watch)
		return;
	if (c->state == CALL_RESTING)
		want = LOOP_READ;
	else if (c->state != CALL_OVER)
		want = (c->paused ? 0 : LOOP_READ) | (sendq_len(&c->out) ? LOOP_WRITE : 0);
	loop_fd_want(c->watch, want);
}

/* Records the failure; `done` follows from the loop. */
static void fail_later(struct http_call *c, int code, const char *what)
{
	if (c->failure.code || c->state == CALL_OVER)
		return;
	(void)err_set(&c->failure, code, "%s", what);
	loop_task_post(c->task);
}

static void close_socket(struct http_call *c)
{
	loop_fd_free(c->watch);
	c->watch = NULL;
	c->fd = fd_close(c->fd);
}

static void finish(struct http_call *c, int result, const struct err *e)
{
	struct err none = ERR_NONE;

	c->state = CALL_OVER;
	loop_task_cancel(c->task);
	c->reusable = result == 0 && c->reusable && c->fd >= 0 && !c->failure.code &&
		      sendq_len(&c->out) == 0 && !c->write_broken && !c->unended &&
		      c->request_left == 0 && http_answer_behind(&c->answer).len == 0;
	if (!c->reusable)
		close_socket(c);
	c->events->done(c->arg, result, e ? e : &none);
}

static void finish_failed(struct http_call *c, int code, const char *what)
{
	struct err e = ERR_NONE;

	(void)err_set(&e, code, "%s", what);
	finish(c, code, &e);
}

/* ---- the answer ---- */

/* False: the call was freed or given up. */
static bool tell_head(struct http_call *c, const struct http1_head *h)
{
	c->events->head(c->arg, h);
	if (c->freed || c->state == CALL_OVER) /* upgraded */
		return false;
	if (h->status != 101)
		return true;
	finish_failed(c, -EPROTO, "nobody took the upgraded connection");
	return false;
}

/* 1 = go on, 0 = needs more bytes, -1 = the call is over. */
static int step(struct http_call *c)
{
	struct http_answer_event ev;

	http_answer_next(&c->answer, &ev);
	switch (ev.kind) {
	case HTTP_ANSWER_NONE:
		return 0;
	case HTTP_ANSWER_INTERIM:
		if (c->events->interim)
			c->events->interim(c->arg, ev.head.status);
		return c->freed ? -1 : 1;
	case HTTP_ANSWER_HEAD:
		c->reusable = c->keeps && ev.head.keep_alive && http_answer_is_framed(&c->answer);
		return tell_head(c, &ev.head) ? 1 : -1;
	case HTTP_ANSWER_DATA:
		c->events->body(c->arg, ev.data);
		return c->freed ? -1 : 1;
	case HTTP_ANSWER_END:
		finish(c, 0, NULL);
		return -1;
	case HTTP_ANSWER_BAD:
		finish(c, ev.e.code, &ev.e);
		return -1;
	}
	return 0;
}

/* Works on what was read.  False: the call is over. */
static bool process_input(struct http_call *c)
{
	int r = 1;

	while (r > 0 && (!c->paused || http_answer_is_empty(&c->answer)))
		r = step(c);
	return r >= 0;
}

static void end_of_input(struct http_call *c, int error)
{
	struct err e = ERR_NONE;
	int r = http_answer_eof(&c->answer, &e);

	c->reusable = false;
	/* A socket that was given may have been on its way still, and never have arrived. */
	if (c->silent && (!error || error == -ECONNRESET))
		error = c->write_error;
	if (error && (r == 0 || (c->silent && error != -ECONNRESET && error != -EPIPE)))
		r = err_set(&e, error, "the connection broke: %s", strerror(-error));
	finish(c, r, &e);
}

static void read_answer(struct http_call *c)
{
	size_t size = READ_FIRST;

	for (int round = 0; round < READ_ROUNDS && !c->paused; round++) {
		char *p = http_answer_room(&c->answer, size);
		ssize_t n;

		if (!p) {
			finish_failed(c, -E2BIG, "the head of the answer is too large");
			return;
		}
		do
			n = recv(c->fd, p, size, MSG_DONTWAIT);
		while (n < 0 && errno == EINTR);
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			end_of_input(c, n < 0 ? -errno : 0);
			return;
		}
		c->last_us = loop_now_us(c->loop);
		c->silent = false;
		http_answer_add(&c->answer, (size_t)n);
		if (!process_input(c))
			return;
		if ((size_t)n < size)
			break;
		size = READ_BYTES;
	}
	http_answer_rest(&c->answer, READ_FIRST);
	update_wants(c);
}

/* ---- the request ---- */

static void queue_pieces(struct http_call *c, const struct iovec *iov, size_t n)
{
	int r;

	if (c->write_broken || c->failure.code)
		return;
	r = sendq_write(&c->out, c->state == CALL_CONNECTING ? -1 : c->fd, iov, n);
	if (r == -E2BIG) {
		fail_later(c, r, "too much of the request is queued");
	} else if (r < 0) {
		/* An early answer may explain it: let reading find out. */
		c->write_broken = true;
		c->write_error = r;
		sendq_done(&c->out);
	} else if (sendq_len(&c->out) > QUEUE_HIGH) {
		c->over_mark = true;
	}
	c->last_us = loop_now_us(c->loop);
	update_wants(c);
}

void http_call_begin(struct http_call *c, struct view method, struct view target,
		     const struct http1_header *headers, size_t headers_n, int64_t length)
{
	/* There may be credentials in it. */
	osb_cleanup(buf_done) struct buf b = BUF_SECRET(HEAD_MAX + target.len);
	struct view text;

	(void)!buf_reserve(&b, HEAD_USUAL);
	c->answer.to_head = view_is(method, "HEAD");
	c->chunks = c->unended = length < 0;
	c->request_left = length > 0 ? (uint64_t)length : 0;
	for (size_t i = 0; i < headers_n; i++)
		c->answer.upgrades |= view_iis(headers[i].name, "Upgrade");
	if (http_request_format(&b, method, target, headers, headers_n, length, c->format) < 0) {
		fail_later(c, -EINVAL, "the request cannot be written as HTTP");
		return;
	}
	text = buf_view(&b);
	queue_pieces(c, &(struct iovec){(void *)text.p, text.len}, 1);
}

bool http_call_write(struct http_call *c, struct view bytes)
{
	char size[24];
	int n;

	if (bytes.len == 0 || c->state == CALL_OVER)
		return !c->over_mark;
	if (!c->chunks) {
		bytes = view_first(bytes, (size_t)MIN(c->request_left, (uint64_t)bytes.len));
		c->request_left -= bytes.len;
		queue_pieces(c, &(struct iovec){(void *)bytes.p, bytes.len}, 1);
		return !c->over_mark;
	}
	n = snprintf(size, sizeof(size), "%zx\r\n", bytes.len);
	queue_pieces(c,
		     (struct iovec[]){
			     {size, (size_t)n},
			     {(void *)bytes.p, bytes.len},
			     {(void *)"\r\n", 2},
		     },
		     3);
	return !c->over_mark;
}

void http_call_end(struct http_call *c)
{
	if (c->state == CALL_OVER)
		return;
	c->unended = false;
	if (c->chunks)
		queue_pieces(c, &(struct iovec){(void *)"0\r\n\r\n", 5}, 1);
	else if (c->request_left > 0)
		fail_later(c, -EPROTO, "the request's body is shorter than was said");
}

/* False: the call was freed. */
static bool flush_request(struct http_call *c)
{
	ssize_t n = sendq_flush(&c->out, c->fd);

	if (n > 0)
		c->last_us = loop_now_us(c->loop);
	if (n < 0 && n != -EAGAIN) {
		c->write_broken = true;
		c->write_error = (int)n;
		sendq_done(&c->out);
	}
	if (!c->over_mark || sendq_len(&c->out) > QUEUE_HIGH / 2)
		return true;
	c->over_mark = false;
	if (!c->events->drained)
		return true;
	c->events->drained(c->arg);
	return !c->freed;
}

/* ---- life ---- */

/* A loop callback is over: the memory goes if the owner freed the call in it. */
static void settle(struct http_call *c)
{
	c->busy = false;
	if (c->freed)
		free(c);
}

/* A timer that runs is left alone: when it fires, it looks how long the silence has been. */
static void start_idle_timer(struct http_call *c)
{
	uint64_t due_us;

	c->last_us = loop_now_us(c->loop);
	if (!c->idle_us)
		return;
	due_us = c->last_us + c->idle_us;
	if (loop_timer_active(c->timer) && c->due_us <= due_us)
		return;
	c->due_us = due_us;
	loop_timer_start(c->timer, c->idle_us / 1000);
}

static void work_socket(struct http_call *c, unsigned events)
{
	if ((events & LOOP_WRITE) && !flush_request(c))
		return;
	if ((events & LOOP_READ) && !c->paused)
		read_answer(c);
	else
		update_wants(c);
}

static void work_timer(struct http_call *c)
{
	uint64_t idle_us = loop_now_us(c->loop) - c->last_us;

	if (c->state != CALL_OPEN || !c->idle_us) {
		/* Nobody waits. */
	} else if (c->paused) {
		/* The owner holds it up, not the server: time starts again with resume. */
	} else if (idle_us >= c->idle_us) {
		finish_failed(c, -ETIMEDOUT, "the server said nothing for too long");
	} else {
		c->due_us = c->last_us + c->idle_us;
		loop_timer_start(c->timer, (c->idle_us - idle_us) / 1000 + 1);
	}
}

static void work_task(struct http_call *c)
{
	if (c->failure.code) {
		struct err e = c->failure;

		finish(c, e.code, &e);
		return;
	}
	if (c->state != CALL_OPEN)
		return;
	if (process_input(c))
		update_wants(c);
}

static void on_socket(void *arg, int fd, unsigned events)
{
	struct http_call *c = arg;

	c->busy = true;
	if (c->state == CALL_RESTING)
		c->broken(c->arg);
	else
		work_socket(c, events);
	settle(c);
}

static void on_timer(void *arg)
{
	struct http_call *c = arg;

	c->busy = true;
	work_timer(c);
	settle(c);
}

static void on_task(void *arg)
{
	struct http_call *c = arg;

	c->busy = true;
	work_task(c);
	settle(c);
}

/* The socket is connected and ours: what was queued leaves. */
static int use_socket(struct http_call *c, int fd, struct err *e)
{
	int r;

	c->fd = fd;
	r = loop_fd_new(c->loop, c->fd, on_socket, c, &c->watch, e);
	if (r < 0)
		return r;
	c->state = CALL_OPEN;
	start_idle_timer(c);
	if (flush_request(c))
		update_wants(c);
	return 0;
}

static void on_connected(void *arg, int fd, const struct err *e)
{
	struct http_call *c = arg;
	struct err failure = *e;
	int r;

	c->busy = true;
	connect_free(take_ptr(c->connect));
	r = fd < 0 ? e->code : use_socket(c, fd, &failure);
	if (r < 0)
		finish(c, r, &failure);
	settle(c);
}

int http_call_new(struct loop *l, const struct http_target *target,
		  const struct http_call_events *events, void *arg, struct http_call **ret,
		  struct err *e)
{
	struct connect_to to = {
		.ip = target->ip,
		.port = target->port,
		.unix_path = target->unix_path,
		.timeout_ms = target->connect_timeout_ms,
	};
	struct http_call *c = mem_new(struct http_call);
	int r;

	c->loop = l;
	c->events = events;
	c->arg = arg;
	c->fd = -1;
	c->idle_us = target->idle_timeout_ms * 1000;
	c->keeps = target->keep_alive;
	c->format = (target->keep_alive ? HTTP_REQUEST_KEEPS : 0u) |
		    (target->parsed ? HTTP_REQUEST_PARSED : 0u);
	c->silent = true;
	c->timer = loop_timer_new(l, on_timer, c);
	c->task = loop_task_new(l, on_task, c);
	sendq_init(&c->out, QUEUE_MAX);
	http_answer_init(&c->answer);
	if (target->fd >= 0)
		r = use_socket(c, target->fd, e);
	else
		r = connect_new(l, &to, on_connected, c, &c->connect, e);
	if (r < 0) {
		http_call_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

/* ---- lives of a connection ---- */

bool http_call_reusable(const struct http_call *c)
{
	return c->state == CALL_OVER && c->reusable;
}

void http_call_rest(struct http_call *c, void (*broken)(void *arg), void *arg)
{
	c->state = CALL_RESTING;
	c->broken = broken;
	c->arg = arg;
	http_answer_again(&c->answer, READ_FIRST);
	update_wants(c);
}

bool http_call_alive(const struct http_call *c)
{
	char byte;

	return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

void http_call_again(struct http_call *c, uint64_t idle_timeout_ms,
		     const struct http_call_events *events, void *arg)
{
	c->state = CALL_OPEN;
	c->events = events;
	c->arg = arg;
	c->paused = c->over_mark = c->reusable = false;
	c->silent = true;
	c->idle_us = idle_timeout_ms * 1000;
	start_idle_timer(c);
}

bool http_call_silent(const struct http_call *c)
{
	return c->silent;
}

void http_call_set_idle(struct http_call *c, uint64_t ms)
{
	c->idle_us = ms * 1000;
	if (c->state == CALL_OPEN)
		start_idle_timer(c);
}

void http_call_pause(struct http_call *c)
{
	c->paused = true;
	update_wants(c);
}

void http_call_resume(struct http_call *c)
{
	if (!c->paused)
		return;
	c->paused = false;
	if (c->state == CALL_OVER)
		return;
	if (c->state != CALL_CONNECTING)
		start_idle_timer(c);
	loop_task_post(c->task);
	update_wants(c);
}

int http_call_upgrade(struct http_call *c, struct buf *ret_rest)
{
	struct view rest = http_answer_behind(&c->answer);

	buf_init(ret_rest, MAX(rest.len, (size_t)1));
	/* Cannot fail: the ceiling is the length. */
	(void)!buf_append_view(ret_rest, rest);
	c->state = CALL_OVER;
	loop_timer_stop(c->timer);
	loop_task_cancel(c->task);
	loop_fd_free(c->watch);
	c->watch = NULL;
	return take_fd(c->fd);
}

void http_call_free(struct http_call *c)
{
	if (!c)
		return;
	c->freed = true;
	c->state = CALL_OVER;
	close_socket(c);
	loop_timer_free(c->timer);
	connect_free(c->connect);
	loop_task_free(c->task);
	sendq_done(&c->out);
	http_answer_done(&c->answer);
	if (!c->busy)
		free(c);
}
