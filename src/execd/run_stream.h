/*
 * execd/run_stream.h - the output of one run in a shell, as events for one client.
 *
 * stdout and stderr come together; every line is an event, empty lines are dropped, and an
 * unfinished line leaves after a moment.  A client that reads slowly slows its run; one that
 * leaves ends it.
 */
#pragma once

#include "base/macro.h"

struct app;
struct buf;
struct err;
struct http_exchange;
struct shell;
struct shell_end;
struct shell_job;

struct run_stream_style {
	unsigned event_flags; /* of net/event_stream.h */
	const char *init;     /* text of the init event, or NULL: none */
	/* Appends the events that end the stream. */
	int (*finish)(struct buf *out, const struct shell_end *end);
	void (*ended)(void *arg); /* the run is over (also when its client left); or NULL */
	void *arg;
};

/* Submits the job (its callbacks are set here) and answers the exchange.  On failure the exchange
 * is untouched. */
osb_must_check int run_stream_start(struct app *app, struct http_exchange *x, struct shell *shell,
				    const struct shell_job *job,
				    const struct run_stream_style *style, struct err *e);
