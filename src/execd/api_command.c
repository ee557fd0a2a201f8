/*
 * execd/api_command.c - /command: decodes, asks execd/command, encodes.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/utf8.h"
#include "codec/json_writer.h"
#include "codec/rfc3339.h"
#include "codec/url.h"
#include "execd/app.h"
#include "execd/code.h"
#include "execd/code_context.h"
#include "execd/command.h"
#include "execd/command_request.h"
#include "execd/errors.h"
#include "execd/routes.h"
#include "execd/sessions.h"
#include "net/http_server.h"

#define STATUS_MAX    ((size_t)64 * 1024 * 1024) /* a status repeats the command, escaped */
#define CURSOR_HEADER "EXECD-COMMANDS-TAIL-CURSOR"
#define CURSOR_DIGITS 24

static void run_body(struct http_exchange *x, struct view text, void *arg)
{
	osb_cleanup(command_request_done) struct command_request q;
	struct err e = ERR_NONE;
	struct app *app = arg;

	if (command_request_decode(app, http_arena(x), text, &q, &e) < 0)
		reply_bad_request(x, CODE_INVALID_REQUEST, &e);
	else
		commands_run(app->commands, x, &q.spec);
}

static void run(struct http_exchange *x, void *app)
{
	http_body_collect(x, COMMAND_REQUEST_MAX, run_body, app);
}

void api_command_interrupt(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct view id = VIEW_NONE;
	struct err e = ERR_NONE;
	struct code_context *context;
	struct command *c;

	if (url_query_get(http_arena(x), http_query(x), "id", &id) <= 0 || id.len == 0) {
		http_reply_error(x, 400, CODE_MISSING_QUERY, "the query parameter id is missing");
		return;
	}
	context = codes_find(app->codes, id);
	if (context) {
		code_context_interrupt(context);
		reply_empty(x);
		return;
	}
	c = commands_find(app->commands, id);
	if (!c && sessions_close(app->sessions, id)) {
		reply_empty(x);
		return;
	}
	if (!c)
		err_set(&e, -ESRCH, "command '" VIEW_FMT "' is unknown",
			VIEW_ARG(view_first(id, 64)));
	if (!c || command_interrupt(c, x, &e) < 0)
		reply_runtime_error(x, &e);
}

static void put_time(struct json_writer *w, const char *key, uint64_t ns)
{
	char text[RFC3339_MAX];

	rfc3339_format((int64_t)ns, text);
	json_put_cstr(w, key, text);
}

static int encode_status(const struct command_status *s, struct buf *ret)
{
	struct json_writer w;

	json_writer_init(&w, ret);
	json_write_object(&w);
	json_put_cstr(&w, "id", s->id);
	json_put_string(&w, "content", s->content);
	json_put_bool(&w, "running", s->running);
	if (!s->running)
		json_put_int(&w, "exit_code", s->exit_code);
	if (s->error)
		json_put_cstr(&w, "error", s->error);
	put_time(&w, "started_at", s->started_ns);
	if (!s->running)
		put_time(&w, "finished_at", s->finished_ns);
	json_write_object_end(&w);
	return json_writer_end(&w);
}

static void status(struct http_exchange *x, void *arg)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(STATUS_MAX);
	struct app *app = arg;
	struct view id = route_param(x, "id");
	struct command *c = commands_find(app->commands, id);
	struct command_status s;

	if (!c) {
		http_reply_error(x, 404, CODE_INVALID_REQUEST, "command '" VIEW_FMT "' is unknown",
				 VIEW_ARG(view_first(id, 64)));
		return;
	}
	command_status(c, &s);
	if (encode_status(&s, &text) < 0)
		http_reply_error(x, 500, CODE_RUNTIME, "the status is too large");
	else
		http_reply(x, 200, "application/json", buf_view(&text));
}

/* How much of the log may be sent now: what is being written may end inside a character. */
static uint64_t whole_characters(int fd, uint64_t start, uint64_t end, bool running)
{
	char tail[3];
	size_t n = (size_t)MIN((uint64_t)sizeof(tail), end - start);

	if (!running || n == 0 || pread(fd, tail, n, (off_t)(end - n)) != (ssize_t)n)
		return end;
	return end - utf8_incomplete_tail(view_mem(tail, n));
}

static void logs(struct http_exchange *x, void *arg)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct app *app = arg;
	struct view id = route_param(x, "id"), text = VIEW_NONE;
	struct command *c = commands_find(app->commands, id);
	struct command_status s;
	struct err e = ERR_NONE;
	char cursor[CURSOR_DIGITS];
	uint64_t start = 0, size = 0;

	if (!c)
		err_set(&e, -EINVAL, "command '" VIEW_FMT "' is unknown",
			VIEW_ARG(view_first(id, 64)));
	if (!c || command_log(c, &fd, &size, &e) < 0) {
		reply_bad_request(x, CODE_INVALID_REQUEST, &e);
		return;
	}
	if (url_query_get(http_arena(x), http_query(x), "cursor", &text) <= 0 ||
	    !num_parse_u64(text, &start))
		start = 0;
	start = MIN(start, size);
	command_status(c, &s);
	size = whole_characters(fd, start, size, s.running);
	snprintf(cursor, sizeof(cursor), "%llu", (unsigned long long)size);
	http_reply_header(x, CURSOR_HEADER, view_of(cursor));
	http_reply_header(x, "Content-Type", VIEW("text/plain; charset=utf-8"));
	http_reply_file(x, 200, take_fd(fd), start, size - start);
}

const struct route api_command_routes[] = {
	{"POST", "/command", run, 0},
	{"DELETE", "/command", api_command_interrupt, 0},
	{"GET", "/command/status/{id}", status, 0},
	{"GET", "/command/{id}/logs", logs, 0},
	{0},
};
