/*
 * execd/code_stream.c - from what a run prints and reports to the events of its stream.
 */
#include "execd/code_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "codec/events.h"
#include "execd/app.h"
#include "execd/code_events.h"
#include "execd/code_message.h"
#include "net/event_stream.h"

#define EVENTS_MAX (8 * CODE_MESSAGE_MAX) /* a message and all of its escapes */
#define KEEP_BYTES 65536
#define TAIL_MAX   4

struct code_stream {
	void (*resume)(void *arg);
	void *arg;
	struct event_stream *events; /* NULL: the client has left */
	bool sending;
	bool left; /* while something was sent */
	struct buf out;
	struct buf joined;		     /* a character's first bytes, and what came next */
	char tails[CODE_STREAMS_][TAIL_MAX]; /* characters that are not whole yet */
	size_t tail_lens[CODE_STREAMS_];
};

static const char *const types[CODE_STREAMS_] = {"stdout", "stderr"};

static bool send_out(struct code_stream *s)
{
	bool more = true;

	s->sending = true;
	if (s->out.len > 0 && s->events)
		more = event_stream_send(s->events, buf_view(&s->out));
	s->sending = false;
	if (s->left && s->events)
		event_stream_end(take_ptr(s->events));
	buf_clear(&s->out);
	buf_shrink(&s->out, KEEP_BYTES);
	/* Who has left is never behind. */
	return more || !s->events;
}

static void on_drained(void *arg)
{
	struct code_stream *s = arg;

	if (s->resume)
		s->resume(s->arg);
}

static void on_gone(void *arg)
{
	struct code_stream *s = arg;

	s->left = true;
	if (!s->sending)
		event_stream_end(take_ptr(s->events));
	if (s->resume)
		s->resume(s->arg);
}

struct code_stream *code_stream_new(struct app *app, struct http_exchange *x, const char *id,
				    void (*resume)(void *arg), void *arg)
{
	struct code_stream *s = mem_new(struct code_stream);

	s->resume = resume;
	s->arg = arg;
	buf_init(&s->out, EVENTS_MAX);
	buf_init(&s->joined, KEEP_BYTES + TAIL_MAX);
	s->events = event_stream_new(app->loop, x, EVENT_STREAM_PINGS, on_drained, on_gone, s);
	(void)!events_text(&s->out, "init", view_of(id), clock_wall_ms());
	(void)send_out(s);
	return s;
}

bool code_stream_output(struct code_stream *s, enum code_stream_name name, struct view bytes)
{
	size_t *tail_len = &s->tail_lens[name];

	if (!s->events)
		return true;
	if (*tail_len > 0) {
		buf_clear(&s->joined);
		/* The ceiling is what a pipe gives at a time, and a character. */
		if (buf_append(&s->joined, s->tails[name], *tail_len) == 0 &&
		    buf_append_view(&s->joined, bytes) == 0)
			bytes = buf_view(&s->joined);
	}
	*tail_len = utf8_incomplete_tail(bytes);
	memcpy(s->tails[name], bytes.p + bytes.len - *tail_len, *tail_len);
	bytes.len -= *tail_len;
	if (bytes.len > 0)
		(void)!events_text(&s->out, types[name], bytes, clock_wall_ms());
	return send_out(s);
}

bool code_stream_message(struct code_stream *s, const struct code_message *m)
{
	int r;

	if (!s->events)
		return true;
	r = m->kind == CODE_ERROR ? code_event_error(&s->out, m, clock_wall_ms())
				  : code_event_result(&s->out, m, clock_wall_ms());
	if (r < 0)
		(void)!events_text(&s->out, "stderr", VIEW("a result was too large to be sent\n"),
				   clock_wall_ms());
	return send_out(s);
}

bool code_stream_error(struct code_stream *s, const char *ename, struct view evalue,
		       struct view traceback)
{
	(void)!events_error(&s->out, ename, evalue, traceback, clock_wall_ms());
	return send_out(s);
}

void code_stream_end(struct code_stream *s, uint64_t took_us)
{
	for (size_t i = 0; i < CODE_STREAMS_; i++)
		if (s->tail_lens[i] > 0)
			(void)!events_text(&s->out, types[i],
					   view_mem(s->tails[i], s->tail_lens[i]), clock_wall_ms());
	(void)!events_complete(&s->out, took_us / 1000, clock_wall_ms());
	/* Sending may find that the client has left: nobody is to be told any more. */
	s->resume = NULL;
	(void)send_out(s);
	code_stream_free(s);
}

void code_stream_free(struct code_stream *s)
{
	if (!s)
		return;
	s->resume = NULL;
	if (s->events)
		event_stream_end(take_ptr(s->events));
	buf_done(&s->out);
	buf_done(&s->joined);
	free(s);
}
