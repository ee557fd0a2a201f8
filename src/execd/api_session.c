/*
 * execd/api_session.c - /session: commands in a shell that remembers.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "codec/events.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "execd/app.h"
#include "execd/errors.h"
#include "execd/paths.h"
#include "execd/process.h"
#include "execd/routes.h"
#include "execd/run_stream.h"
#include "execd/sessions.h"
#include "execd/shell.h"
#include "net/event_stream.h"
#include "net/http_server.h"

#define CREATE_BODY_MAX ((size_t)64 << 10)
#define RUN_BODY_MAX	(2 * SHELL_COMMAND_MAX)
#define TIMEOUT_MAX_MS	((int64_t)366 * 24 * 3600 * 1000)
#define TIMEOUT_DEFAULT ((int64_t)24 * 3600 * 1000)

struct run_request {
	struct view command;
	const char *cwd;
	int64_t timeout_ms;
};

static int parse_create(struct app *app, struct arena *a, struct view body, const char **ret_cwd,
			struct err *e)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct view cwd = VIEW_NONE;
	int r;

	*ret_cwd = NULL;
	if (view_trim(body).len > 0) {
		r = json_parse(body, JSON_FIRST_VALUE, &v, e);
		if (r == 0)
			r = json_field_string(v, "cwd", &cwd, e);
		if (r < 0)
			return r;
	}
	if (cwd.len == 0)
		return 0;
	r = paths_resolve(app, a, cwd, /* env= */ NULL, ret_cwd, e);
	return r < 0 ? err_ctx(e, "cwd") : r;
}

static void reply_created(struct http_exchange *x, const char *id)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(256);
	struct json_writer w;

	json_writer_init(&w, &out);
	json_write_object(&w);
	json_put_cstr(&w, "session_id", id);
	json_write_object_end(&w);
	(void)!json_writer_end(&w);
	http_reply(x, 200, "application/json", buf_view(&out));
}

static void create_with_body(struct http_exchange *x, struct view body, void *arg)
{
	struct app *app = arg;
	struct err e = ERR_NONE;
	const char *cwd, *id;
	int r;

	if (parse_create(app, http_arena(x), body, &cwd, &e) < 0) {
		reply_bad_request(x, CODE_INVALID_REQUEST, &e);
		return;
	}
	if (cwd && paths_make_dirs(cwd, &e) < 0) {
		reply_runtime_error(x, &e);
		return;
	}
	if (!cwd && paths_resolve(app, http_arena(x), VIEW("."), NULL, &cwd, &e) < 0)
		cwd = "/";
	r = sessions_create(app->sessions, cwd, &id, &e);
	if (r == -EBUSY)
		http_reply_error(x, 503, CODE_UNAVAILABLE, "%s", e.msg);
	else if (r < 0)
		reply_runtime_error(x, &e);
	else
		reply_created(x, id);
}

static void session_create(struct http_exchange *x, void *app)
{
	http_body_collect(x, CREATE_BODY_MAX, create_with_body, app);
}

static int parse_run(struct app *app, struct arena *a, const struct json *v,
		     struct run_request *ret, struct err *e)
{
	struct view cwd = VIEW_NONE;
	int r;

	*ret = (struct run_request){0};
	if (json_kind(v) != JSON_OBJECT)
		return err_set(e, -EINVAL, "the body must be a JSON object");
	r = json_field_string(v, "command", &ret->command, e);
	if (r < 0)
		return r;
	if (ret->command.len == 0)
		return err_set(e, -EINVAL, "'command' is required and must not be empty");
	if (view_has(ret->command, '\0'))
		return err_set(e, -EINVAL, "'command' must not hold NUL bytes");
	if (ret->command.len > SHELL_COMMAND_MAX)
		return err_set(e, -EINVAL, "'command' must not be longer than %zu bytes",
			       SHELL_COMMAND_MAX);
	r = json_field_int(v, "timeout", 0, TIMEOUT_MAX_MS, &ret->timeout_ms, e);
	if (r == 0 || ret->timeout_ms == 0)
		ret->timeout_ms = TIMEOUT_DEFAULT;
	if (r >= 0)
		r = json_field_string(v, "cwd", &cwd, e);
	if (r < 0 || cwd.len == 0)
		return r < 0 ? r : 0;
	r = paths_resolve(app, a, cwd, /* env= */ NULL, &ret->cwd, e);
	if (r == 0)
		r = paths_check_dir(ret->cwd, e);
	return r < 0 ? err_ctx(e, "cwd") : 0;
}

/* How a run ended, as the text of a traceback. */
static const char *describe(const struct shell_end *end, char ret[128])
{
	char status[64];

	switch (end->cause) {
	case SHELL_TIMED_OUT:
		snprintf(ret, 128, "timed out after %" PRIu64 " ms", end->time_us / 1000);
		break;
	case SHELL_INTERRUPTED:
		snprintf(ret, 128, "signal: interrupt");
		break;
	case SHELL_CLOSED:
		snprintf(ret, 128, "signal: killed (the session was closed)");
		break;
	default:
		if (end->shell_gone)
			snprintf(ret, 128, "%s", process_describe(end->status, status));
		else
			snprintf(ret, 128, "exit status %d", end->code);
	}
	return ret;
}

static int finish(struct buf *out, const struct shell_end *end)
{
	char code[16], text[128];

	if (end->cause == SHELL_ENDED && end->code == 0)
		return events_complete(out, end->time_us / 1000, clock_wall_ms());
	if (end->cause == SHELL_NOT_STARTED)
		return events_error(out, "CommandExecError", view_of(end->e->msg), VIEW_NONE,
				    clock_wall_ms());
	snprintf(code, sizeof(code), "%d", end->code);
	return events_error(out, "CommandExecError", view_of(code), view_of(describe(end, text)),
			    clock_wall_ms());
}

static void run_with_body(struct http_exchange *x, struct view body, void *arg)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct app *app = arg;
	struct view id = route_param(x, "sessionId");
	struct run_stream_style style = {.event_flags = EVENT_STREAM_PINGS, .finish = finish};
	struct run_request req;
	struct err e = ERR_NONE;
	struct shell *shell;

	if (json_parse(body, JSON_FIRST_VALUE, &v, &e) < 0 ||
	    parse_run(app, http_arena(x), v, &req, &e) < 0) {
		reply_bad_request(x, CODE_INVALID_REQUEST, &e);
		return;
	}
	shell = sessions_find(app->sessions, id, &style.init);
	if (!shell) {
		http_reply_error(x, 500, CODE_RUNTIME, "session '" VIEW_FMT "' not found",
				 VIEW_ARG(view_first(id, 64)));
		return;
	}
	if (run_stream_start(app, x, shell,
			     &(struct shell_job){.command = req.command,
						 .cwd = req.cwd,
						 .timeout_ms = (uint64_t)req.timeout_ms},
			     &style, &e) < 0)
		reply_runtime_error(x, &e);
}

static void session_run(struct http_exchange *x, void *app)
{
	http_body_collect(x, RUN_BODY_MAX, run_with_body, app);
}

static void session_delete(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct view id = route_param(x, "sessionId");

	if (sessions_close(app->sessions, id))
		reply_empty(x);
	else
		http_reply_error(x, 404, CODE_CONTEXT_NOT_FOUND, "session '" VIEW_FMT "' not found",
				 VIEW_ARG(view_first(id, 64)));
}

const struct route api_session_routes[] = {
	{"POST", "/session", session_create, 0},
	{"POST", "/session/{sessionId}/run", session_run, 0},
	{"DELETE", "/session/{sessionId}", session_delete, 0},
	{0},
};
