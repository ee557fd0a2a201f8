/*
 * execd/api_isolated.c - /v1/isolated: sessions in namespaces of their own, and their runs.
 */
#include "execd/api_isolated.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "codec/events.h"
#include "codec/json_writer.h"
#include "codec/rfc3339.h"
#include "codec/url.h"
#include "execd/app.h"
#include "execd/errors.h"
#include "execd/isolated.h"
#include "execd/options.h"
#include "execd/process.h"
#include "execd/routes.h"
#include "execd/run_request.h"
#include "execd/run_stream.h"
#include "execd/shell.h"
#include "net/event_stream.h"
#include "net/http_server.h"

#define CREATE_BODY_MAX ((size_t)1 << 20)
#define RUN_BODY_MAX	(2 * SHELL_COMMAND_MAX)
#define ANSWER_MAX	((size_t)4 << 20)

struct isolated_session *api_isolated_session(struct app *app, struct http_exchange *x)
{
	const struct isolated_probe *p = isolated_probe(app->isolated);
	struct view id = route_param(x, "sessionId");
	struct isolated_session *s;

	if (!p->available) {
		http_reply_error(x, 503, CODE_NOT_SUPPORTED, "%s", p->message);
		return NULL;
	}
	s = isolated_find(app->isolated, id);
	if (!s)
		http_reply_error(x, 404, CODE_SESSION_NOT_FOUND,
				 "isolated session '" VIEW_FMT "' not found",
				 VIEW_ARG(view_first(id, 64)));
	return s;
}

static void put_time(struct json_writer *w, const char *key, uint64_t ns)
{
	char text[RFC3339_MAX];

	rfc3339_format((int64_t)ns, text);
	json_put_cstr(w, key, text);
}

static void reply_json(struct http_exchange *x, int status, struct json_writer *w, struct buf *out)
{
	if (json_writer_end(w) < 0)
		http_reply_error(x, 500, CODE_RUNTIME, "the answer is too large");
	else
		http_reply(x, status, "application/json", buf_view(out));
}

/* ---- capabilities ---- */

static void put_state(struct json_writer *w, const char *key, const char *state, const char *why)
{
	json_write_key(w, key);
	json_write_object(w);
	json_put_cstr(w, "state", state);
	if (why)
		json_put_cstr(w, "message", why);
	json_write_object_end(w);
}

static void capabilities(struct http_exchange *x, void *arg)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(ANSWER_MAX);
	struct app *app = arg;
	const struct isolated_probe *p = isolated_probe(app->isolated);
	struct json_writer w;

	json_writer_init(&w, &out);
	json_write_object(&w);
	json_put_bool(&w, "available", p->available);
	json_put_cstr(&w, "isolator", "native");
	json_put_cstr(&w, "version", "1");
	if (!p->available)
		json_put_cstr(&w, "message", p->message);
	json_put_bool(&w, "setpriv_available", p->setpriv);
	json_put_bool(&w, "userns_available", p->userns);
	json_put_bool(&w, "commit_supported", p->available);
	json_put_bool(&w, "diff_supported", p->available);
	json_write_key(&w, "hardening");
	json_write_object(&w);
	json_put_cstr(&w, "init_mode",
		      getpid() == 1	   ? "pid1"
		      : app->options->init ? "subreaper"
					   : "none");
	put_state(&w, "signal_shield", p->available ? "active" : "disabled",
		  "a session's processes see and signal only themselves");
	put_state(&w, "cap_drop", p->available ? "active" : "disabled", NULL);
	put_state(&w, "seccomp", "disabled", "sessions have no system call filter of their own");
	put_state(&w, "landlock", "unsupported", NULL);
	put_state(&w, "ebpf", "unsupported", NULL);
	json_write_object_end(&w);
	json_write_object_end(&w);
	reply_json(x, 200, &w, &out);
}

/* ---- sessions ---- */

static void reply_create_error(struct http_exchange *x, int code, const struct err *e)
{
	switch (code) {
	case -EINVAL:
		http_reply_error(x, 400, CODE_INVALID_REQUEST, "%s", e->msg);
		break;
	case -EOPNOTSUPP:
		http_reply_error(x, 503, CODE_NOT_SUPPORTED, "%s", e->msg);
		break;
	case -EBUSY:
		http_reply_error(x, 503, CODE_UNAVAILABLE, "%s", e->msg);
		break;
	default:
		http_reply_error(x, 500, CODE_RUNTIME, "%s", e->msg);
	}
}

static void create_with_body(struct http_exchange *x, struct view body, void *arg)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(ANSWER_MAX);
	struct app *app = arg;
	struct isolated_session *s;
	struct err e = ERR_NONE;
	struct json_writer w;
	int r = isolated_create(app->isolated, body, &s, &e);

	if (r < 0) {
		reply_create_error(x, r, &e);
		return;
	}
	json_writer_init(&w, &out);
	json_write_object(&w);
	json_put_cstr(&w, "session_id", s->id);
	put_time(&w, "created_at", s->created_ns);
	json_write_object_end(&w);
	reply_json(x, 201, &w, &out);
}

static void session_create(struct http_exchange *x, void *app)
{
	http_body_collect(x, CREATE_BODY_MAX, create_with_body, app);
}

static void put_session(struct json_writer *w, const struct isolated_session *s)
{
	int64_t left = isolated_idle_left_s(s);

	json_put_cstr(w, "session_id", s->id);
	json_put_cstr(w, "status", isolated_alive(s) ? "active" : "dead");
	put_time(w, "created_at", s->created_ns);
	/* A session that never ran anything was last used when it was made. */
	put_time(w, "last_run_at", s->last_run_ns ? s->last_run_ns : s->created_ns);
	json_write_key(w, "idle_remaining_seconds");
	if (left < 0)
		json_write_null(w);
	else
		json_write_int(w, left);
}

static void sessions_list(struct http_exchange *x, void *arg)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(ANSWER_MAX);
	struct app *app = arg;
	const struct isolated_probe *p = isolated_probe(app->isolated);
	struct isolated_session *s;
	struct json_writer w;
	size_t pos = 0;

	if (!p->available) {
		http_reply_error(x, 503, CODE_NOT_SUPPORTED, "%s", p->message);
		return;
	}
	json_writer_init(&w, &out);
	json_write_object(&w);
	json_write_key(&w, "sessions");
	json_write_array(&w);
	while ((s = isolated_next(app->isolated, &pos))) {
		json_write_object(&w);
		put_session(&w, s);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_write_object_end(&w);
	reply_json(x, 200, &w, &out);
}

static void session_get(struct http_exchange *x, void *arg)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(ANSWER_MAX);
	struct isolated_session *s = api_isolated_session(arg, x);
	struct json_writer w;

	if (!s)
		return;
	json_writer_init(&w, &out);
	json_write_object(&w);
	put_session(&w, s);
	isolated_spec_write(&s->spec, &w);
	json_write_object_end(&w);
	reply_json(x, 200, &w, &out);
}

static void session_delete(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct isolated_session *s = api_isolated_session(app, x);

	if (!s)
		return;
	isolated_delete(app->isolated, s);
	reply_empty(x);
}

/* ---- runs ---- */

/* {"type":"error","text":...,"timestamp":...,"error":{...}} */
static int put_error(struct buf *out, const char *name, const char *value, const char *text)
{
	struct json_writer w;

	json_writer_init(&w, out);
	json_write_object(&w);
	json_put_cstr(&w, "type", "error");
	json_put_cstr(&w, "text", text);
	json_put_int(&w, "timestamp", (int64_t)clock_wall_ms());
	json_write_key(&w, "error");
	json_write_object(&w);
	json_put_cstr(&w, "ename", name);
	json_put_cstr(&w, "evalue", value);
	json_write_key(&w, "traceback");
	json_write_array(&w);
	json_write_array_end(&w);
	json_write_object_end(&w);
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? -E2BIG : buf_append_str(out, "\n\n");
}

static int finish(struct buf *out, const struct shell_end *end)
{
	char code[16], text[64], status[64];

	switch (end->cause) {
	case SHELL_ENDED:
		if (end->code == 0)
			return events_complete(out, 0, clock_wall_ms());
		snprintf(code, sizeof(code), "%d", end->code);
		snprintf(text, sizeof(text), "%s",
			 end->shell_gone ? process_describe(end->status, status) : code);
		return put_error(out, "ExitError", code, text);
	case SHELL_TIMED_OUT:
		return put_error(out, "RuntimeError", "run timed out", "run timed out");
	case SHELL_NOT_STARTED:
		return put_error(out, "RuntimeError", end->e->msg, end->e->msg);
	case SHELL_CLOSED:
		return put_error(out, "RuntimeError", "session terminated", "session terminated");
	default:
		return put_error(out, "RuntimeError", "run interrupted", "run interrupted");
	}
}

static void run_ended(void *arg)
{
	isolated_end(arg);
}

static void run_foreground(struct app *app, struct http_exchange *x, struct isolated_session *s,
			   const struct isolated_run_request *req)
{
	struct run_stream_style style = {.finish = finish, .ended = run_ended, .arg = s};
	struct shell_job job = {.command = req->code,
				.envs = &req->envs,
				.timeout_ms = (uint64_t)req->timeout_s * 1000};
	struct err e = ERR_NONE;

	isolated_begin(s);
	if (run_stream_start(app, x, isolated_shell(s), &job, &style, &e) < 0) {
		isolated_end(s);
		reply_bad_request(x, CODE_INVALID_REQUEST, &e);
	}
}

static void run_background(struct http_exchange *x, struct isolated_session *s,
			   const struct isolated_run_request *req)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(ANSWER_MAX);
	struct shell_job job = {.command = req->code, .envs = &req->envs};
	struct isolated_run *run;
	struct err e = ERR_NONE;
	struct json_writer w;

	if (s->spec.mode == ISOLATED_RO)
		err_set(&e, -EINVAL, "a read-only session has no background runs");
	else if (!isolated_alive(s))
		err_set(&e, -ESRCH, "session process has exited");
	if (e.code || isolated_run_start(s, &job, &run, &e) < 0) {
		reply_bad_request(x, CODE_INVALID_REQUEST, &e);
		return;
	}
	json_writer_init(&w, &out);
	json_write_object(&w);
	json_put_cstr(&w, "session_id", s->id);
	json_put_cstr(&w, "run_id", run->id);
	put_time(&w, "started_at", run->started_ns);
	json_write_object_end(&w);
	reply_json(x, 202, &w, &out);
}

static void run_with_body(struct http_exchange *x, struct view body, void *arg)
{
	osb_cleanup(isolated_run_request_done) struct isolated_run_request req = {0};
	struct isolated_session *s = api_isolated_session(arg, x);
	struct err e = ERR_NONE;

	if (!s)
		return;
	if (isolated_run_request_decode(body, &req, &e) < 0)
		reply_bad_request(x, CODE_INVALID_REQUEST, &e);
	else if (s->committing)
		http_reply_error(x, 409, CODE_RUNTIME, "the session is being committed");
	else if (req.background)
		run_background(x, s, &req);
	else
		run_foreground(arg, x, s, &req);
}

static void session_run(struct http_exchange *x, void *app)
{
	http_body_collect(x, RUN_BODY_MAX, run_with_body, app);
}

static struct isolated_run *find_run(struct app *app, struct http_exchange *x)
{
	struct isolated_session *s = api_isolated_session(app, x);
	struct view id = route_param(x, "runId");
	struct isolated_run *run;

	if (!s)
		return NULL;
	run = isolated_run_find(s, id);
	if (!run)
		http_reply_error(x, 404, CODE_SESSION_NOT_FOUND, "run '" VIEW_FMT "' not found",
				 VIEW_ARG(view_first(id, 64)));
	return run;
}

static void run_get(struct http_exchange *x, void *app)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(ANSWER_MAX);
	struct isolated_run *run = find_run(app, x);
	struct json_writer w;

	if (!run)
		return;
	json_writer_init(&w, &out);
	json_write_object(&w);
	json_put_cstr(&w, "session_id", run->session->id);
	json_put_cstr(&w, "run_id", run->id);
	json_put_bool(&w, "running", run->finished_ns == 0);
	if (run->finished_ns)
		json_put_int(&w, "exit_code", run->exit_code);
	if (run->error)
		json_put_cstr(&w, "error", run->error);
	put_time(&w, "started_at", run->started_ns);
	if (run->finished_ns)
		put_time(&w, "finished_at", run->finished_ns);
	json_write_object_end(&w);
	reply_json(x, 200, &w, &out);
}

static void run_logs(struct http_exchange *x, void *app)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(ISOLATED_LOG_MAX);
	struct isolated_run *run = find_run(app, x);
	struct view text = VIEW_NONE;
	uint64_t cursor = 0;
	struct err e = ERR_NONE;
	char tail[24];

	if (!run)
		return;
	if (url_query_get(http_arena(x), http_query(x), "cursor", &text) < 0 ||
	    (text.len > 0 && !num_parse_u64(text, &cursor))) {
		err_set(&e, -EINVAL, "'cursor' must be a number of bytes");
		reply_bad_request(x, CODE_INVALID_REQUEST, &e);
		return;
	}
	if (isolated_log_read(&run->log, cursor, &out, &e) < 0) {
		reply_runtime_error(x, &e);
		return;
	}
	snprintf(tail, sizeof(tail), "%llu", (unsigned long long)run->log.total);
	http_reply_header(x, "EXECD-ISOLATED-TAIL-CURSOR", view_of(tail));
	http_reply(x, 200, "text/plain; charset=utf-8", buf_view(&out));
}

const struct route api_isolated_routes[] = {
	{"GET", "/v1/isolated/capabilities", capabilities, 0},
	{"GET", "/v1/isolated/sessions", sessions_list, 0},
	{"POST", "/v1/isolated/session", session_create, 0},
	{"GET", "/v1/isolated/session/{sessionId}", session_get, 0},
	{"DELETE", "/v1/isolated/session/{sessionId}", session_delete, 0},
	{"POST", "/v1/isolated/session/{sessionId}/run", session_run, 0},
	{"GET", "/v1/isolated/session/{sessionId}/runs/{runId}", run_get, 0},
	{"GET", "/v1/isolated/session/{sessionId}/runs/{runId}/logs", run_logs, 0},
	{0},
};
