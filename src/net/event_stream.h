/*
 * net/event_stream.h - a chunked answer of events: headers, keep-alive pings, back-pressure.
 *
 * The headers leave with the first event.  Pings ({"type":"ping","text":"pong",...}) go out after
 * `init` and then every 3 s while the stream is open (EVENT_STREAM_PINGS).
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;
struct loop;
struct http_exchange;
struct event_stream;

enum event_stream_flags { EVENT_STREAM_PINGS = 1 };

typedef void event_stream_fn(void *arg);

/* `drained`: the queue is below its mark again; `gone`: the client left (the stream is dead, free
 * it). */
struct event_stream *event_stream_new(struct loop *l, struct http_exchange *x, unsigned flags,
				      event_stream_fn *drained, event_stream_fn *gone, void *arg);

/* Sends whole events (each ends with an empty line).  False: stop until `drained`. */
bool event_stream_send(struct event_stream *s, struct view events);

/* Ends the answer and frees the stream.  After `gone`, only frees. */
void event_stream_end(struct event_stream *s);
