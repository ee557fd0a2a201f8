/*
 * sdk/stream.h - streams of events: a JSON object a line, with or without "data:" in front.
 */
#pragma once

#include <opensandbox/command.h>

#include "base/macro.h"

struct asking;
struct json;

/* Non-zero ends the stream. */
typedef int stream_event_fn(void *arg, const struct json *event);

osb_must_check int stream_events(osb_sandbox *s, struct asking *q, stream_event_fn *fn, void *arg,
				 const osb_call *call, osb_error *e);

/* The stream of a run: handlers are called, *ret says how it ended.  `lines`: each event is a line
 * whose end was taken away. */
osb_must_check int stream_run(osb_sandbox *s, struct asking *q, const osb_output *output,
			      bool lines, const osb_call *call, osb_run *ret, osb_error *e);
