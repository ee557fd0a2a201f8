/*
 * net/event_stream.c - events over a chunked answer.
 */
#include "net/event_stream.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "codec/events.h"
#include "net/http_server.h"
#include "net/loop.h"

#define PING_MS	       3000
#define PING_MAX_BYTES 256

struct event_stream {
	struct http_exchange *x; /* NULL once the client has gone */
	struct loop_timer *timer;
	unsigned flags;
	bool begun;
	event_stream_fn *drained, *gone;
	void *arg;
};

static void exchange_drained(struct http_exchange *x, void *arg)
{
	struct event_stream *s = arg;

	(void)x;
	if (s->drained)
		s->drained(s->arg);
}

static void exchange_gone(struct http_exchange *x, void *arg)
{
	struct event_stream *s = arg;

	(void)x;
	s->x = NULL;
	loop_timer_stop(s->timer);
	if (s->gone)
		s->gone(s->arg);
}

static void append_ping(struct buf *out)
{
	/* A ping that does not fit is no loss: the buffer is made for one. */
	if (events_text(out, "ping", VIEW("pong"), clock_wall_ms()) < 0)
		buf_clear(out);
}

static void ping(void *arg)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(PING_MAX_BYTES);
	struct event_stream *s = arg;

	/* A client that does not even take what is queued needs no pings on top. */
	if (!s->x || http_reply_queued(s->x) > 0)
		return;
	append_ping(&out);
	(void)http_reply_write(s->x, buf_view(&out));
}

struct event_stream *event_stream_new(struct loop *l, struct http_exchange *x, unsigned flags,
				      event_stream_fn *drained, event_stream_fn *gone, void *arg)
{
	struct event_stream *s = mem_new(struct event_stream);

	s->x = x;
	s->flags = flags;
	s->drained = drained;
	s->gone = gone;
	s->arg = arg;
	s->timer = loop_timer_new(l, ping, s);
	http_on_gone(x, exchange_gone, s);
	http_on_drained(x, exchange_drained, s);
	return s;
}

static void begin(struct event_stream *s)
{
	s->begun = true;
	http_reply_header(s->x, "Content-Type", VIEW("text/event-stream"));
	http_reply_header(s->x, "Cache-Control", VIEW("no-cache"));
	http_reply_header(s->x, "X-Accel-Buffering", VIEW("no"));
	http_reply_begin(s->x, 200, -1);
	if (s->flags & EVENT_STREAM_PINGS)
		loop_timer_repeat(s->timer, PING_MS);
}

bool event_stream_send(struct event_stream *s, struct view events)
{
	bool first = !s->begun;
	bool more;

	if (!s->x)
		return true;
	if (first)
		begin(s);
	more = http_reply_write(s->x, events);
	if (first && s->flags & EVENT_STREAM_PINGS) {
		osb_cleanup(buf_done) struct buf out = BUF_INIT(PING_MAX_BYTES);

		append_ping(&out);
		more = http_reply_write(s->x, buf_view(&out));
	}
	return more;
}

void event_stream_end(struct event_stream *s)
{
	if (s->x) {
		if (!s->begun)
			begin(s);
		http_on_gone(s->x, NULL, NULL);
		http_on_drained(s->x, NULL, NULL);
		http_reply_end(s->x);
	}
	loop_timer_free(s->timer);
	free(s);
}
