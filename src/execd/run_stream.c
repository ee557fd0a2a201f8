/*
 * execd/run_stream.c - from the bytes of a run to the events of a stream.
 *
 * The stream lives as long as its run: when the client leaves first, the run is interrupted and
 * what it still prints goes nowhere.
 */
#include "execd/run_stream.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/events.h"
#include "codec/lines.h"
#include "execd/app.h"
#include "execd/shell.h"
#include "net/event_stream.h"
#include "net/loop.h"

#define LINE_MAX_BYTES ((size_t)512 << 10) /* longer lines leave in pieces */
#define OUT_MAX_BYTES  (16 * LINE_MAX_BYTES)
#define UNFINISHED_MS  50 /* how long a line may wait for its end */
#define KEEP_BYTES     65536

struct run_stream {
	struct run_stream_style style;
	struct event_stream *events; /* NULL once the client has left, or all was said */
	struct shell_run *run;	     /* NULL once it has ended, or was left to itself */
	unsigned busy;		     /* calls on the stack that still need us */
	bool overdue;		     /* the unfinished line has waited long enough */
	struct loop_timer *unfinished;
	struct lines lines;
	struct buf in;	/* an unfinished line */
	struct buf out; /* events not yet handed over */
};

static void stream_free(struct run_stream *s)
{
	loop_timer_free(s->unfinished);
	buf_done(&s->in);
	buf_done(&s->out);
	free(s);
}

/* Sending may find that the client has left: the stream stays until the last caller is through. */
static void leave(struct run_stream *s)
{
	struct run_stream_style style = s->style;

	if (--s->busy > 0 || s->run || s->events)
		return;
	stream_free(s);
	if (style.ended)
		style.ended(style.arg);
}

static void put_line(struct run_stream *s, struct view line)
{
	/* Cannot fail: the buffer takes any line in its worst escaping, and is emptied in time. */
	if (line.len > 0)
		(void)!events_text(&s->out, "stdout", line, clock_wall_ms());
}

static bool send_out(struct run_stream *s)
{
	bool more = true;

	if (s->out.len > 0 && s->events)
		more = event_stream_send(s->events, buf_view(&s->out));
	buf_clear(&s->out);
	buf_shrink(&s->out, KEEP_BYTES);
	return more;
}

static bool put_lines(struct run_stream *s)
{
	struct view rest = buf_view(&s->in);
	struct view line;
	bool more = true;

	while (lines_next(&s->lines, &rest, LINE_MAX_BYTES, &line) != LINES_MORE) {
		put_line(s, line);
		if (s->out.len > LINE_MAX_BYTES)
			more = send_out(s) && more;
	}
	buf_consume(&s->in, s->in.len - rest.len);
	buf_shrink(&s->in, KEEP_BYTES);
	return send_out(s) && more;
}

static void put_rest(struct run_stream *s, bool at_end)
{
	struct view rest = buf_view(&s->in);
	struct view line;

	if (lines_rest(&s->lines, &rest, at_end, &line))
		put_line(s, line);
	buf_consume(&s->in, s->in.len - rest.len);
}

/* Timers come before input: what is in the pipe already gets one more turn to finish the line. */
static void on_unfinished(void *arg)
{
	struct run_stream *s = arg;

	if (!s->overdue) {
		s->overdue = true;
		loop_timer_start(s->unfinished, 1);
		return;
	}
	s->busy++;
	put_rest(s, /* at_end= */ false);
	(void)send_out(s);
	leave(s);
}

/* Winds the clock for a line that has just begun; none runs while it is us who do not read. */
static void watch_unfinished(struct run_stream *s, bool reading)
{
	s->overdue = false;
	if (s->in.len == 0 || !reading)
		loop_timer_stop(s->unfinished);
	else
		loop_timer_start(s->unfinished, UNFINISHED_MS);
}

static bool on_output(void *arg, struct view bytes)
{
	struct run_stream *s = arg;
	size_t before = s->in.len;
	bool more = true;

	s->busy++;
	/* The rest is always shorter than a line, so this fits. */
	if (buf_append_view(&s->in, bytes) == 0)
		more = put_lines(s);
	/* A line that only grows keeps its time. */
	if (before == 0 || s->in.len != before + bytes.len || !more)
		watch_unfinished(s, more);
	s->overdue = false;
	leave(s);
	return more;
}

static void on_done(void *arg, const struct shell_end *end)
{
	struct run_stream *s = arg;
	struct event_stream *events;

	s->busy++;
	s->run = NULL;
	put_rest(s, /* at_end= */ true);
	(void)!s->style.finish(&s->out, end);
	(void)send_out(s);
	events = take_ptr(s->events);
	if (events)
		event_stream_end(events);
	leave(s);
}

static void on_drained(void *arg)
{
	struct run_stream *s = arg;

	if (!s->run)
		return;
	watch_unfinished(s, /* reading= */ true);
	shell_run_resume(s->run);
}

static void on_gone(void *arg)
{
	struct run_stream *s = arg;
	struct shell_run *run = take_ptr(s->run);

	s->busy++;
	event_stream_end(take_ptr(s->events));
	if (run)
		shell_run_abandon(run);
	leave(s);
}

int run_stream_start(struct app *app, struct http_exchange *x, struct shell *shell,
		     const struct shell_job *job, const struct run_stream_style *style,
		     struct err *e)
{
	struct run_stream *s = mem_new(struct run_stream);
	struct shell_job mine = *job;
	int r;

	s->style = *style;
	s->busy = 1;
	buf_init(&s->in, 2 * LINE_MAX_BYTES);
	buf_init(&s->out, OUT_MAX_BYTES);
	s->unfinished = loop_timer_new(app->loop, on_unfinished, s);
	mine.output = on_output;
	mine.done = on_done;
	mine.arg = s;
	r = shell_submit(shell, &mine, &s->run, e);
	if (r < 0) {
		stream_free(s);
		return r;
	}
	s->events = event_stream_new(app->loop, x, style->event_flags, on_drained, on_gone, s);
	if (style->init) {
		(void)!events_text(&s->out, "init", view_of(style->init), clock_wall_ms());
		(void)send_out(s);
	}
	leave(s);
	return 0;
}
