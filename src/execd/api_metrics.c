/*
 * execd/api_metrics.c - /metrics: a sample now, or one every second while somebody watches.
 */
#include "base/buf.h"
#include "base/mem.h"
#include "execd/app.h"
#include "execd/errors.h"
#include "execd/metrics.h"
#include "execd/routes.h"
#include "net/event_stream.h"
#include "net/http_server.h"
#include "net/loop.h"

#define SAMPLE_MAX 1024
#define EVERY_MS   1000

static void sample(struct http_exchange *x, void *arg)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(SAMPLE_MAX);
	struct app *app = arg;
	struct metrics m;

	metrics_read(&app->metrics, &m);
	if (metrics_write(&m, &out) < 0)
		http_reply_error(x, 500, CODE_RUNTIME, "the sample is too long");
	else
		http_reply(x, 200, "application/json", buf_view(&out));
}

/* One client that watches: its own stream, timer and earlier reading. */
struct watch {
	struct event_stream *stream;
	struct loop_timer *timer;
	struct metrics_base base;
	bool full; /* the client does not read: samples are left out */
};

static void watch_tick(void *arg)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(SAMPLE_MAX);
	struct watch *w = arg;
	struct metrics m;

	if (w->full)
		return;
	metrics_read(&w->base, &m);
	if (metrics_write(&m, &out) == 0 && buf_append_str(&out, "\n\n") == 0)
		w->full = !event_stream_send(w->stream, buf_view(&out));
}

static void watch_drained(void *arg)
{
	struct watch *w = arg;

	w->full = false;
}

static void watch_gone(void *arg)
{
	struct watch *w = arg;

	loop_timer_free(w->timer);
	event_stream_end(w->stream);
	free(w);
}

static void watch(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct watch *w;

	/* A stream without a body has no end to wait for. */
	if (http_is_head(x)) {
		http_reply(x, 200, "text/event-stream", VIEW_NONE);
		return;
	}
	w = mem_new(struct watch);
	w->base = app->metrics;
	w->stream = event_stream_new(app->loop, x, /* flags= */ 0, watch_drained, watch_gone, w);
	w->timer = loop_timer_new(app->loop, watch_tick, w);
	loop_timer_repeat(w->timer, EVERY_MS);
	watch_tick(w);
}

const struct route api_metrics_routes[] = {
	{"GET", "/metrics", sample, 0},
	{"GET", "/metrics/watch", watch, 0},
	{0},
};
