/*
 * execd/code_stream.h - what a client sees of one run of code.
 *
 * A client that leaves does not end its run: what comes then is dropped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "execd/code_driver.h"

struct app;
struct code_message;
struct code_stream;
struct http_exchange;

/* Answers with `init`.  `resume`: the client can take more, or has left; or NULL. */
struct code_stream *code_stream_new(struct app *app, struct http_exchange *x, const char *id,
				    void (*resume)(void *arg), void *arg);

/* Bytes that were printed, a result, an error.  False: no more until `resume`. */
bool code_stream_output(struct code_stream *s, enum code_stream_name name, struct view bytes);
bool code_stream_message(struct code_stream *s, const struct code_message *m);
bool code_stream_error(struct code_stream *s, const char *ename, struct view evalue,
		       struct view traceback);

/* The last event; frees the stream. */
void code_stream_end(struct code_stream *s, uint64_t took_us);

/* Without a last event; no callback comes.  Accepts NULL. */
void code_stream_free(struct code_stream *s);
