/*
 * sdk/stream.c - see stream.h.
 */
#include "sdk/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"
#include "sdk/ask.h"
#include "sdk/fail.h"
#include "sdk/sandbox_int.h"

#define LINE_MAX_BYTES (64u << 20) /* pictures are long */
#define TRACE_MAX      256

/* ---- lines and events ---- */

struct lines {
	struct buf line; /* not complete yet */
	stream_event_fn *fn;
	void *arg;
	bool too_long, broken;
};

static int take_line(struct lines *l, struct view line)
{
	osb_cleanup(json_freep) struct json *event = NULL;
	struct err why = ERR_NONE;

	if (view_starts(line, VIEW("data:")))
		line = view_skip(line, 5);
	line = view_trim(line);
	if (view_ends(line, VIEW("\r")))
		line = view_first(line, line.len - 1);
	if (!view_starts(line, VIEW("{")))
		return 0; /* empty lines, comments, names of events */
	if (json_parse(line, 0, &event, &why) < 0) {
		l->broken = true;
		return -1;
	}
	return l->fn(l->arg, event);
}

static int on_bytes(void *arg, struct view bytes)
{
	struct lines *l = arg;

	while (bytes.len) {
		size_t end = view_find(bytes, '\n');
		struct view piece = view_first(bytes, end);
		int r;

		if (end == bytes.len || l->line.len) {
			l->too_long = buf_append_view(&l->line, piece) < 0;
			if (l->too_long)
				return -1;
			if (end == bytes.len)
				return 0;
			piece = buf_view(&l->line);
		}
		r = take_line(l, piece);
		buf_clear(&l->line);
		if (r != 0)
			return r;
		bytes = view_skip(bytes, end + 1);
	}
	return 0;
}

int stream_events(osb_sandbox *s, struct asking *q, stream_event_fn *fn, void *arg,
		  const osb_call *call, osb_error *e)
{
	struct lines l = {.line = BUF_INIT(LINE_MAX_BYTES), .fn = fn, .arg = arg};
	struct answer answer;
	int r;

	asking_header(q, "Accept", "text/event-stream");
	q->ask.target = buf_view(&q->target);
	q->ask.endless = true;
	answer_init(&answer);
	r = ask_stream(s->client, &q->ask, call, on_bytes, &l, &answer, e);
	if (r == 0 && l.line.len && take_line(&l, buf_view(&l.line)) != 0)
		r = fail(e, OSB_ERR_CANCELLED, "the call was ended by its handler");
	if (l.too_long || l.broken)
		r = fail(e, OSB_ERR_PROTOCOL,
			 l.broken ? "the stream holds what is no event"
				  : "an event of the stream is too long");
	answer_done(&answer);
	buf_done(&l.line);
	return r;
}

/* ---- runs ---- */

struct run {
	const osb_output *output;
	bool lines;
	osb_run *ret;
	struct buf text;
};

static void copy(char *to, size_t size, struct view from)
{
	snprintf(to, size, VIEW_FMT, VIEW_ARG(view_first(from, size - 1)));
}

/* Lines get back the end that the protocol takes from them; an empty one is sent as "\n". */
static int give_text(struct run *r, int (*fn)(void *, const char *, size_t), struct view text)
{
	if (!fn)
		return 0;
	buf_clear(&r->text);
	if (buf_append_view(&r->text, text) < 0 ||
	    (r->lines && !view_is(text, "\n") && buf_append_char(&r->text, '\n') < 0))
		return -1;
	return fn(r->output->arg, buf_str(&r->text), r->text.len);
}

static int give_result(struct run *r, const struct json *results)
{
	struct json_writer w;

	if (!r->output->result || !results)
		return 0;
	buf_clear(&r->text);
	json_writer_init(&w, &r->text);
	json_write_json(&w, results);
	if (json_writer_end(&w) < 0)
		return -1;
	return r->output->result(r->output->arg, buf_str(&r->text));
}

static int give_failure(struct run *r, const struct json *error)
{
	const struct json *trace = json_get(error, "traceback");
	struct view name = VIEW_NONE, value = VIEW_NONE, line;
	char *lines[TRACE_MAX + 1] = {0};
	size_t n = 0;
	int64_t code;
	int stop = 0;

	(void)json_str(json_get(error, "ename"), &name);
	(void)json_str(json_get(error, "evalue"), &value);
	copy(r->ret->error_name, sizeof(r->ret->error_name), name);
	copy(r->ret->error_value, sizeof(r->ret->error_value), value);
	r->ret->has_exit_code = num_parse_i64(value, &code) && code >= -1 && code <= 255;
	r->ret->exit_code = r->ret->has_exit_code ? (int)code : -1;
	if (!r->output->failed)
		return 0;
	for (size_t i = 0; trace && i < json_len(trace) && n < TRACE_MAX; i++)
		if (json_str(json_at(trace, i), &line))
			lines[n++] = strndup(line.p, line.len);
	stop = r->output->failed(r->output->arg, r->ret->error_name, r->ret->error_value,
				 (const char *const *)lines);
	for (size_t i = 0; i < n; i++)
		free(lines[i]);
	return stop;
}

static int on_event(void *arg, const struct json *event)
{
	struct run *r = arg;
	struct view type = VIEW_NONE, text = VIEW_NONE;
	int64_t took = 0;

	(void)json_str(json_get(event, "type"), &type);
	(void)json_str(json_get(event, "text"), &text);
	if (view_is(type, "stdout"))
		return give_text(r, r->output->out, text);
	if (view_is(type, "stderr"))
		return give_text(r, r->output->err, text);
	if (view_is(type, "init")) {
		copy(r->ret->id, sizeof(r->ret->id), text);
		return r->output->started ? r->output->started(r->output->arg, r->ret->id) : 0;
	}
	if (view_is(type, "result"))
		return give_result(r, json_get(event, "results"));
	if (view_is(type, "error"))
		return give_failure(r, json_get(event, "error"));
	if (view_is(type, "execution_complete")) {
		(void)json_int(json_get(event, "execution_time"), &took);
		r->ret->took_ms = (uint64_t)MAX(took, (int64_t)0);
		r->ret->complete = true;
	}
	return 0;
}

int stream_run(osb_sandbox *s, struct asking *q, const osb_output *output, bool lines,
	       const osb_call *call, osb_run *ret, osb_error *e)
{
	static const osb_output silent = {0};
	osb_run ignored;
	struct run run = {
		.output = output ? output : &silent,
		.lines = lines,
		.ret = ret ? ret : &ignored,
		.text = BUF_INIT(LINE_MAX_BYTES + 1),
	};
	int r;

	*run.ret = (osb_run){.exit_code = -1};
	r = stream_events(s, q, on_event, &run, call, e);
	buf_done(&run.text);
	if (r == 0 && !run.ret->complete && !run.ret->error_name[0])
		return fail(e, OSB_ERR_PROTOCOL, "the stream broke off before the run's end");
	return r;
}
