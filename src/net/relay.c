/*
 * net/relay.c - two one-way pumps, each a socket, a pipe and a socket.
 *
 * A pump holds its pipe only while bytes flow: an idle relay costs two descriptors, not six.
 * A pump that cannot write stops reading, so that a slow reader slows the other end down.
 */
#include "net/relay.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "net/loop.h"
#include "sys/splice.h"

#define MOVE_BYTES   (256 * 1024)
#define ROUNDS	     16	  /* per wake-up: one fast pair must not starve the others */
#define PIPE_IDLE_MS 1000 /* an empty pipe is given back after so long without bytes */

struct pump {
	int from, to;	 /* borrowed from the relay */
	struct buf rest; /* read before the relay began */
	int pipe[2];
	size_t piped; /* bytes in the pipe */
	bool wants_read, wants_write;
	bool at_end; /* nothing more comes */
	bool over;
};

struct relay {
	struct loop *loop;
	relay_done_fn *done;
	void *arg;
	int fds[2];
	struct loop_fd *watches[2];
	struct pump pumps[2]; /* pumps[i] reads from fds[i] */
	struct loop_timer *idle;
	struct loop_timer *pipe_timer;
	struct loop_task *task;
	uint64_t idle_us;
	uint64_t last_us;
	uint64_t pipe_us; /* last_us when the pipe timer was started */
};

static void pump_init(struct pump *p, int from, int to, struct buf *rest)
{
	p->from = from;
	p->to = to;
	p->pipe[0] = p->pipe[1] = -1;
	if (rest) {
		p->rest = *rest;
		*rest = (struct buf){0};
	}
}

static void pump_end(struct pump *p)
{
	p->over = true;
	p->wants_read = p->wants_write = false;
	p->piped = 0;
	buf_done(&p->rest);
	splice_pipe_close(p->pipe);
}

/* Bytes written, 0 when there was nothing to write, or -errno. */
static ssize_t pump_out(struct pump *p)
{
	struct view rest = buf_view(&p->rest);
	ssize_t n;

	if (rest.len) {
		n = send(p->to, rest.p, rest.len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0)
			return errno == EINTR ? -EAGAIN : -errno;
		buf_consume(&p->rest, (size_t)n);
		if (p->rest.len == 0)
			buf_done(&p->rest);
		return n;
	}
	if (!p->piped)
		return 0;
	n = splice_move(p->pipe[0], p->to, p->piped);
	if (n > 0)
		p->piped -= (size_t)n;
	return n;
}

static ssize_t pump_in(struct pump *p)
{
	struct err e = ERR_NONE;
	ssize_t n;

	if (p->pipe[0] < 0) {
		n = splice_pipe_open(p->pipe, &e);
		if (n < 0)
			return n;
	}
	n = splice_move(p->from, p->pipe[1], MOVE_BYTES);
	if (n > 0)
		p->piped = (size_t)n;
	return n;
}

/*
 * One round: everything held goes out before more comes in.  1 = go on, 0 = wait for the
 * socket or over, -errno = the relay must end.
 */
static int pump_round(struct pump *p)
{
	ssize_t n = pump_out(p);

	if (n == -EAGAIN) {
		p->wants_write = true;
		return 0;
	}
	if (n < 0) {
		/* That end takes nothing more; what it sent before may still be read. */
		pump_end(p);
		return 0;
	}
	if (n > 0)
		return 1;
	if (p->at_end) {
		(void)shutdown(p->to, SHUT_WR);
		pump_end(p);
		return 0;
	}
	n = pump_in(p);
	if (n == -EAGAIN) {
		p->wants_read = true;
		return 0;
	}
	p->at_end = n == 0;
	return n < 0 ? (int)n : 1;
}

/* Runs a pump until it must wait.  -errno: the relay must end. */
static int pump_run(struct relay *r, struct pump *p)
{
	int result = 1;

	p->wants_read = p->wants_write = false;
	for (int i = 0; i < ROUNDS && result > 0; i++) {
		size_t held = p->piped + p->rest.len;

		result = pump_round(p);
		if (p->piped + p->rest.len != held)
			r->last_us = loop_now_us(r->loop);
	}
	if (result > 0) {
		/* Out of rounds: the level-triggered loop comes back at once. */
		p->wants_write = p->piped || p->rest.len || p->at_end;
		p->wants_read = !p->wants_write;
	}
	return result < 0 ? result : 0;
}

static void update_wants(struct relay *r)
{
	for (int i = 0; i < 2; i++) {
		unsigned want = 0;

		want |= r->pumps[i].wants_read ? LOOP_READ : 0;
		want |= r->pumps[!i].wants_write ? LOOP_WRITE : 0;
		loop_fd_want(r->watches[i], want);
	}
}

static void finish(struct relay *r)
{
	for (int i = 0; i < 2; i++) {
		pump_end(&r->pumps[i]);
		loop_fd_want(r->watches[i], 0);
	}
	loop_timer_stop(r->idle);
	loop_timer_stop(r->pipe_timer);
	loop_task_cancel(r->task);
	r->done(r->arg);
}

/* Runs both pumps; false when the relay is over (and perhaps freed). */
static bool run(struct relay *r, bool first, bool second)
{
	struct pump *a = &r->pumps[0], *b = &r->pumps[1];

	if ((first && !a->over && pump_run(r, a) < 0) ||
	    (second && !b->over && pump_run(r, b) < 0) || (a->over && b->over)) {
		finish(r);
		return false;
	}
	update_wants(r);
	if ((a->pipe[0] >= 0 || b->pipe[0] >= 0) && !loop_timer_active(r->pipe_timer)) {
		r->pipe_us = r->last_us;
		loop_timer_start(r->pipe_timer, PIPE_IDLE_MS);
	}
	return true;
}

static void on_socket(void *arg, int fd, unsigned events)
{
	struct relay *r = arg;
	bool is_a = fd == r->fds[0];
	bool reads = events & LOOP_READ, writes = events & LOOP_WRITE;

	(void)run(r, is_a ? reads : writes, is_a ? writes : reads);
}

static void on_task(void *arg)
{
	(void)run(arg, /* first= */ true, /* second= */ true);
}

static void on_idle(void *arg)
{
	struct relay *r = arg;
	uint64_t idle_us = loop_now_us(r->loop) - r->last_us;

	if (idle_us >= r->idle_us)
		finish(r);
	else
		loop_timer_start(r->idle, (r->idle_us - idle_us) / 1000 + 1);
}

static void on_pipe_timer(void *arg)
{
	struct relay *r = arg;
	bool idle = r->pipe_us == r->last_us;
	bool left = false;

	for (int i = 0; i < 2; i++) {
		struct pump *p = &r->pumps[i];

		if (idle && !p->piped)
			splice_pipe_close(p->pipe);
		left |= p->pipe[0] >= 0 && !p->piped;
	}
	r->pipe_us = r->last_us;
	if (left)
		loop_timer_start(r->pipe_timer, PIPE_IDLE_MS);
}

int relay_new(struct loop *l, int a, struct buf *a_rest, int b, struct buf *b_rest,
	      uint64_t idle_ms, relay_done_fn *done, void *arg, struct relay **ret, struct err *e)
{
	struct relay *r = mem_new(struct relay);

	r->loop = l;
	r->done = done;
	r->arg = arg;
	r->fds[0] = a;
	r->fds[1] = b;
	pump_init(&r->pumps[0], a, b, a_rest);
	pump_init(&r->pumps[1], b, a, b_rest);
	r->idle_us = idle_ms * 1000;
	r->last_us = loop_now_us(l);
	r->idle = loop_timer_new(l, on_idle, r);
	r->pipe_timer = loop_timer_new(l, on_pipe_timer, r);
	r->task = loop_task_new(l, on_task, r);
	for (int i = 0; i < 2; i++) {
		int result = loop_fd_new(l, r->fds[i], on_socket, r, &r->watches[i], e);

		if (result < 0) {
			relay_free(r);
			return result;
		}
	}
	if (idle_ms)
		loop_timer_start(r->idle, idle_ms);
	loop_task_post(r->task);
	*ret = r;
	return 0;
}

void relay_free(struct relay *r)
{
	if (!r)
		return;
	for (int i = 0; i < 2; i++) {
		pump_end(&r->pumps[i]);
		loop_fd_free(r->watches[i]);
		fd_close(r->fds[i]);
	}
	loop_timer_free(r->idle);
	loop_timer_free(r->pipe_timer);
	loop_task_free(r->task);
	free(r);
}
