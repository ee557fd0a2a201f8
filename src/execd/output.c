/*
 * execd/output.c - pipe, lines, events.
 */
#include "execd/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "codec/events.h"
#include "codec/lines.h"
#include "execd/app.h"
#include "net/loop.h"

#define FLUSH_MS   50
#define LINE_MAX   ((size_t)512 * 1024) /* escaped at most six times as long: below 4 MiB */
#define READ_MIN   ((size_t)4 * 1024)
#define READ_MAX   ((size_t)256 * 1024)
#define PIPE_BYTES (1024 * 1024)
#define SEND_BYTES ((size_t)256 * 1024) /* events are sent in portions of about this size */
#define EVENTS_MAX ((size_t)4 * 1024 * 1024)
#define IDLE_BYTES 4096 /* of scratch that stay when no program runs */

enum end_state { END_OPEN, END_DRAINING, END_DONE };

struct output {
	struct app *app;
	const struct output_events *events;
	void *arg;
	const char *type;
	int fd; /* -1 after its end */
	struct loop_fd *watch;
	struct loop_timer *flush;
	struct buf in; /* read, not sent */
	struct lines lines;
	size_t read_size;    /* grows with what comes */
	size_t drain_left;   /* END_DRAINING: bytes still to be read */
	uint64_t partial_us; /* when the first byte of the unfinished line came */
	enum end_state end;
	bool stopped; /* the receiver is behind */
	bool dropping;
	bool sending; /* events are being made of `in` */
};

static void send_events(struct output *o)
{
	struct buf *b = &o->app->events;

	if (b->len > 0 && !o->events->send(o->arg, buf_view(b)) && !o->dropping)
		o->stopped = true;
	buf_clear(b);
}

static void put_event(struct output *o, struct view text, uint64_t now_ms)
{
	/* The ceiling is above the largest line and a full portion: it cannot be met. */
	(void)!events_text(&o->app->events, o->type, text.len > 0 ? text : VIEW("\n"), now_ms);
	if (o->app->events.len >= SEND_BYTES)
		send_events(o);
}

/* All but the last `left` bytes of the input became events.  The receiver may have left meanwhile.
 */
static void sent(struct output *o, size_t left)
{
	o->sending = false;
	if (o->dropping)
		buf_done(&o->in);
	else
		buf_consume(&o->in, o->in.len - left);
}

/* The unfinished line as it is now; at the end with whatever bytes it has. */
static void send_rest(struct output *o, bool at_end)
{
	struct view rest = buf_view(&o->in), text;

	o->sending = true;
	if (lines_rest(&o->lines, &rest, at_end, &text))
		put_event(o, text, clock_wall_ms());
	send_events(o);
	sent(o, rest.len);
}

static void send_lines(struct output *o)
{
	struct view rest = buf_view(&o->in), line;
	uint64_t now_ms = clock_wall_ms();

	o->sending = true;
	while (!o->stopped && !o->dropping &&
	       lines_next(&o->lines, &rest, LINE_MAX, &line) != LINES_MORE)
		put_event(o, line, now_ms);
	send_events(o);
	sent(o, rest.len);
}

/* Timers come before input: what is in the pipe already may end the line. */
static bool more_is_there(const struct output *o)
{
	int n = 0;

	return o->fd >= 0 && ioctl(o->fd, FIONREAD, &n) == 0 && n > 0;
}

static void on_flush(void *arg)
{
	struct output *o = arg;
	uint64_t age_us;

	if (o->stopped || o->in.len == 0)
		return;
	if (more_is_there(o)) {
		loop_timer_start(o->flush, 1);
		return;
	}
	age_us = loop_now_us(o->app->loop) - o->partial_us;
	if (age_us < FLUSH_MS * 1000) {
		loop_timer_start(o->flush, FLUSH_MS - age_us / 1000);
		return;
	}
	send_rest(o, /* at_end= */ false);
}

/* Sees to it that the unfinished line does not wait for long. */
static void watch_partial(struct output *o, bool is_new)
{
	if (o->in.len == 0 || o->end != END_OPEN)
		return;
	if (is_new)
		o->partial_us = loop_now_us(o->app->loop);
	if (!o->flush)
		o->flush = loop_timer_new(o->app->loop, on_flush, o);
	if (!loop_timer_active(o->flush))
		loop_timer_start(o->flush, FLUSH_MS);
}

static void close_pipe(struct output *o)
{
	loop_fd_free(o->watch);
	o->watch = NULL;
	o->fd = fd_close(o->fd);
}

/* One read of at most `max` bytes.  What it got; 0 at the end or when nothing is there now. */
static size_t read_some(struct output *o, size_t max)
{
	size_t want = MIN(o->read_size, max);
	char *room = buf_reserve(&o->in, want);
	ssize_t n;

	if (!room)
		return 0;
	do
		n = read(o->fd, room, want);
	while (n < 0 && errno == EINTR);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		close_pipe(o);
	if (n <= 0)
		return 0;
	if (!o->dropping)
		buf_commit(&o->in, (size_t)n);
	if ((size_t)n == o->read_size && o->read_size < READ_MAX) {
		/* A busy writer: fewer and larger portions from now on.  A smaller pipe will do. */
		if (o->read_size == READ_MIN)
			(void)fcntl(o->fd, F_SETPIPE_SZ, PIPE_BYTES);
		o->read_size *= 4;
	}
	return (size_t)n;
}

static void finish(struct output *o)
{
	close_pipe(o);
	if (o->in.len > 0 && !o->dropping)
		send_rest(o, /* at_end= */ true);
	o->end = END_DONE;
	o->events->ended(o->arg);
}

static void drain(struct output *o)
{
	for (;;) {
		size_t n;

		if (!o->dropping)
			send_lines(o);
		if (o->stopped)
			return;
		if (o->fd < 0 || o->drain_left == 0)
			break;
		n = read_some(o, o->drain_left);
		if (n == 0)
			break;
		o->drain_left -= n;
	}
	finish(o);
}

static void on_readable(void *arg, int fd, unsigned events)
{
	struct output *o = arg;
	size_t before = o->in.len;
	size_t n = read_some(o, SIZE_MAX);

	if (o->dropping)
		return;
	if (n > 0)
		send_lines(o);
	if (o->fd < 0 && !o->stopped)
		send_rest(o, /* at_end= */ true);
	/* Less than before and all that came: a line ended, what is left is a new one. */
	watch_partial(o, before == 0 || o->in.len < before + n);
	if (o->in.len == 0)
		buf_shrink(&o->in, READ_MAX);
	if (o->stopped && o->watch)
		loop_fd_want(o->watch, 0);
}

int output_new(struct app *app, int fd, const char *type, const struct output_events *events,
	       void *arg, struct output **ret, struct err *e)
{
	struct output *o = mem_new(struct output);
	int flags = fcntl(fd, F_GETFL);

	(void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	o->app = app;
	o->fd = fd;
	o->type = type;
	o->events = events;
	o->arg = arg;
	o->read_size = READ_MIN;
	buf_init(&o->in, LINE_MAX + READ_MAX);
	app->events.max = EVENTS_MAX;
	app->outputs_n++;
	if (loop_fd_new(app->loop, fd, on_readable, o, &o->watch, e) < 0) {
		output_free(o);
		return e->code;
	}
	loop_fd_want(o->watch, LOOP_READ);
	*ret = o;
	return 0;
}

void output_resume(struct output *o)
{
	if (!o->stopped)
		return;
	o->stopped = false;
	if (o->end == END_DRAINING) {
		drain(o);
		return;
	}
	if (o->end == END_DONE)
		return;
	send_lines(o);
	if (o->stopped)
		return;
	if (o->fd < 0)
		send_rest(o, /* at_end= */ true);
	else
		loop_fd_want(o->watch, LOOP_READ);
	watch_partial(o, /* is_new= */ true);
}

void output_drop(struct output *o)
{
	o->dropping = true;
	o->stopped = false;
	/* Called by the receiver while it gets something: whoever sends goes on from here. */
	if (o->sending)
		return;
	buf_done(&o->in);
	if (o->end == END_DRAINING)
		drain(o);
	else if (o->watch)
		loop_fd_want(o->watch, LOOP_READ);
}

void output_end(struct output *o)
{
	int n = 0;

	if (o->fd >= 0 && !o->dropping && ioctl(o->fd, FIONREAD, &n) < 0)
		n = 0;
	o->end = END_DRAINING;
	o->drain_left = (size_t)n;
	if (o->watch)
		loop_fd_want(o->watch, 0);
	if (!o->stopped)
		drain(o);
}

void output_free(struct output *o)
{
	if (!o)
		return;
	close_pipe(o);
	loop_timer_free(o->flush);
	buf_done(&o->in);
	if (--o->app->outputs_n == 0)
		buf_shrink(&o->app->events, IDLE_BYTES);
	free(o);
}
