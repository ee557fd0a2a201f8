/*
 * execd/api_pty.c - /pty: terminals over WebSocket.
 */
#include <errno.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "codec/json_writer.h"
#include "codec/url.h"
#include "execd/app.h"
#include "execd/errors.h"
#include "execd/paths.h"
#include "execd/pty.h"
#include "execd/pty_client.h"
#include "execd/pty_ring.h"
#include "execd/ptys.h"
#include "execd/routes.h"
#include "execd/run_request.h"
#include "net/http_server.h"

#define BODY_MAX ((size_t)256 * 1024)

/* ---- POST /pty ---- */

static int decode_create(struct app *app, struct arena *a, struct view body, const char **ret_cwd,
			 const char **ret_command, struct err *e)
{
	osb_cleanup(shell_request_done) struct shell_request req;
	int r = shell_request_decode(body, &req, e);

	if (r < 0)
		return r;
	if (req.command.p) {
		*ret_command = arena_str(a, req.command);
		if (!*ret_command)
			return err_set(e, -E2BIG, "'command' is too long");
	}
	if (req.cwd.len == 0)
		return 0;
	r = paths_resolve(app, a, req.cwd, /* env= */ NULL, ret_cwd, e);
	return r < 0 ? err_ctx(e, "cwd") : 0;
}

static void reply_json(struct http_exchange *x, int status, struct json_writer *w)
{
	json_write_object_end(w);
	(void)!json_writer_end(w);
	http_reply(x, status, "application/json", buf_view(w->out));
}

static void create_with_body(struct http_exchange *x, struct view body, void *arg)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(256);
	struct app *app = arg;
	struct json_writer w;
	struct err e = ERR_NONE;
	const char *cwd = NULL, *command = NULL;
	struct pty *p;

	if (decode_create(app, http_arena(x), body, &cwd, &command, &e) < 0) {
		reply_bad_request(x, CODE_INVALID_REQUEST, &e);
		return;
	}
	if (cwd && paths_make_dirs(cwd, &e) < 0) {
		reply_runtime_error(x, &e);
		return;
	}
	if (ptys_create(app->ptys, cwd, command, &p, &e) < 0) {
		http_reply_error(x, 503, CODE_UNAVAILABLE, "%s", e.msg);
		return;
	}
	json_writer_init(&w, &out);
	json_write_object(&w);
	json_put_cstr(&w, "session_id", pty_id(p));
	reply_json(x, 201, &w);
}

static void create(struct http_exchange *x, void *app)
{
	http_body_collect(x, BODY_MAX, create_with_body, app);
}

/* ---- one terminal ---- */

/* NULL: there is none, and 404 was answered. */
static struct pty *find(struct http_exchange *x, struct app *app)
{
	struct view id = route_param(x, "sessionId");
	struct pty *p = ptys_find(app->ptys, id);

	if (!p)
		http_reply_error(x, 404, CODE_CONTEXT_NOT_FOUND,
				 "pty session " VIEW_FMT " not found",
				 VIEW_ARG(view_first(id, 64)));
	return p;
}

static void show(struct http_exchange *x, void *app)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(256);
	struct pty *p = find(x, app);
	struct json_writer w;

	if (!p)
		return;
	json_writer_init(&w, &out);
	json_write_object(&w);
	json_put_cstr(&w, "session_id", pty_id(p));
	json_put_bool(&w, "running", pty_running(p));
	json_write_key(&w, "output_offset");
	json_write_uint(&w, pty_output(p)->total);
	reply_json(x, 200, &w);
}

static void delete (struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct pty *p = find(x, app);

	if (!p)
		return;
	ptys_delete(app->ptys, p);
	reply_empty(x);
}

static bool query_is(struct http_exchange *x, const char *name, const char *value)
{
	struct view v = VIEW_NONE;

	return url_query_get(http_arena(x), http_query(x), name, &v) == 1 && view_is(v, value);
}

static void attach(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct pty *p = find(x, app);
	struct pty_attach how = {0};
	struct view since = VIEW_NONE;

	if (!p)
		return;
	how.mode = query_is(x, "pty", "0") ? PTY_PIPES : PTY_TERMINAL;
	how.takeover = query_is(x, "takeover", "1");
	how.viewer = query_is(x, "mode", "viewer");
	/* What is no number means "from the beginning". */
	if (url_query_get(http_arena(x), http_query(x), "since", &since) == 1)
		(void)num_parse_u64(since, &how.since);
	pty_client_attach(ptys_clients(app->ptys), app, p, x, &how);
}

const struct route api_pty_routes[] = {
	{"POST", "/pty", create, 0},
	{"GET", "/pty/{sessionId}", show, 0},
	{"DELETE", "/pty/{sessionId}", delete, 0},
	{"GET", "/pty/{sessionId}/ws", attach, 0},
	{0},
};
