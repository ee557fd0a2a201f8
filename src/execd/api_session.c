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
#include "codec/json_writer.h"
#include "execd/app.h"
#include "execd/errors.h"
#include "execd/paths.h"
#include "execd/process.h"
#include "execd/routes.h"
#include "execd/run_request.h"
#include "execd/run_stream.h"
#include "execd/sessions.h"
#include "execd/shell.h"
#include "net/event_stream.h"
#include "net/http_server.h"

#define CREATE_BODY_MAX ((size_t)64 << 10)
#define RUN_BODY_MAX	(2 * SHELL_COMMAND_MAX)

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
	osb_cleanup(shell_request_done) struct shell_request req;
	struct app *app = arg;
	struct err e = ERR_NONE;
	const char *cwd = NULL, *id;
	int r;

	r = shell_request_decode(body, &req, &e);
	if (r == 0 && req.cwd.len &&
	    paths_resolve(app, http_arena(x), req.cwd, /* env= */ NULL, &cwd, &e) < 0)
		r = err_ctx(&e, "cwd");
	if (r < 0) {
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

/* The run's directory must exist; it sticks for later runs. */
static int resolve_cwd(struct app *app, struct arena *a, struct view cwd, const char **ret,
		       struct err *e)
{
	int r;

	if (cwd.len == 0)
		return 0;
	r = paths_resolve(app, a, cwd, /* env= */ NULL, ret, e);
	if (r == 0)
		r = paths_check_dir(*ret, e);
	return r < 0 ? err_ctx(e, "cwd") : 0;
}

static void run_with_body(struct http_exchange *x, struct view body, void *arg)
{
	osb_cleanup(session_run_request_done) struct session_run_request req;
	const char *cwd = NULL;
	struct app *app = arg;
	struct view id = route_param(x, "sessionId");
	struct run_stream_style style = {.event_flags = EVENT_STREAM_PINGS, .finish = finish};
	struct err e = ERR_NONE;
	struct shell *shell;

	if (session_run_request_decode(body, &req, &e) < 0 ||
	    resolve_cwd(app, http_arena(x), req.cwd, &cwd, &e) < 0) {
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
						 .cwd = cwd,
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
