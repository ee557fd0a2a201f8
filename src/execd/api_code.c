/*
 * execd/api_code.c - /code: decodes, asks execd/code, encodes.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/strv.h"
#include "codec/json_writer.h"
#include "codec/url.h"
#include "execd/app.h"
#include "execd/code.h"
#include "execd/code_context.h"
#include "execd/code_kernel.h"
#include "execd/code_languages.h"
#include "execd/code_request.h"
#include "execd/command.h"
#include "execd/command_request.h"
#include "execd/env.h"
#include "execd/errors.h"
#include "execd/paths.h"
#include "execd/routes.h"
#include "net/http_server.h"

#define CONTEXT_BODY_MAX ((size_t)64 << 10)
#define CONTEXT_JSON_MAX ((size_t)32 << 10)
#define LIST_JSON_MAX	 (CODES_MAX * CONTEXT_JSON_MAX)

/* How a language is served. */
enum backend { BY_CONTEXT, BY_COMMAND, BY_BACKGROUND_COMMAND };

static enum backend backend_of(const struct code_request *q)
{
	if (view_is(q->language, "command") || (q->language.len == 0 && q->id.len == 0))
		return BY_COMMAND;
	return view_is(q->language, "background-command") ? BY_BACKGROUND_COMMAND : BY_CONTEXT;
}

static int find_language(struct app *app, struct view name, const struct code_language **ret,
			 struct err *e)
{
	const struct code_language *l = code_language_find(name);
	struct strv env = STRV_INIT;

	if (!l && env_for_command(app, /* envs= */ NULL, &env, e) == 0)
		l = code_kernel_language(name, &env);
	strv_done(&env);
	if (!l)
		return err_set(e, -ENOENT,
			       "language '" VIEW_FMT "' is not supported: it has no driver, and "
			       "no Jupyter kernel in this sandbox",
			       VIEW_ARG(view_first(name, 64)));
	*ret = l;
	return 0;
}

/* The same for what clients may have contexts of. */
static int find_listed(struct app *app, struct view name, const struct code_language **ret,
		       struct err *e)
{
	const struct code_language *l = NULL;

	if (find_language(app, name, &l, e) < 0)
		return e->code;
	if (l->flags & CODE_HIDDEN)
		return err_set(e, -EINVAL, "language '%s' has no contexts", l->name);
	*ret = l;
	return 0;
}

/* The directory of a new context, made if it is missing; NULL: none was named. */
static int make_cwd(struct app *app, struct arena *a, struct view cwd, const char **ret,
		    struct err *e)
{
	*ret = NULL;
	if (cwd.len == 0)
		return 0;
	if (paths_resolve(app, a, cwd, /* env= */ NULL, ret, e) < 0 || paths_make_dirs(*ret, e) < 0)
		return err_ctx(e, "cwd");
	return 0;
}

static void reply_failure(struct http_exchange *x, const struct err *e)
{
	if (e->code == -EBUSY)
		http_reply_error(x, 503, CODE_UNAVAILABLE, "%s", e->msg);
	else
		reply_runtime_error(x, e);
}

/* ---- running ---- */

static void run_command(struct app *app, struct http_exchange *x, const struct code_request *q,
			bool background)
{
	osb_cleanup(command_request_done) struct command_request c;
	struct err e = ERR_NONE;

	if (command_request_line(app, http_arena(x), q->code, q->cwd, background, &c, &e) < 0)
		reply_bad_request(x, CODE_INVALID_REQUEST, &e);
	else
		commands_run(app->commands, x, &c.spec);
}

static int find_context(struct app *app, struct http_exchange *x, const struct code_request *q,
			struct code_context **ret, struct err *e)
{
	const struct code_language *language = NULL;
	const char *cwd;

	if (q->language.len > 0 && find_language(app, q->language, &language, e) < 0)
		return e->code;
	if (q->id.len > 0 && !(language && language->flags & CODE_HIDDEN)) {
		*ret = codes_find(app->codes, q->id);
		return *ret ? 0
			    : err_set(e, -ENOENT, "context '" VIEW_FMT "' not found",
				      VIEW_ARG(view_first(q->id, 64)));
	}
	if (make_cwd(app, http_arena(x), q->cwd, &cwd, e) < 0)
		return e->code;
	return codes_default(app->codes, language, cwd, ret, e);
}

static void run_body(struct http_exchange *x, struct view text, void *arg)
{
	osb_cleanup(code_request_done) struct code_request q;
	struct app *app = arg;
	struct code_context *c = NULL;
	struct err e = ERR_NONE;
	enum backend backend;

	if (code_run_request_decode(text, &q, &e) < 0) {
		reply_bad_request(x, CODE_INVALID_REQUEST, &e);
		return;
	}
	backend = backend_of(&q);
	if (backend != BY_CONTEXT)
		run_command(app, x, &q, backend == BY_BACKGROUND_COMMAND);
	else if (find_context(app, x, &q, &c, &e) < 0)
		reply_failure(x, &e);
	else
		code_context_run(c, x, q.code);
}

static void run(struct http_exchange *x, void *app)
{
	http_body_collect(x, CODE_REQUEST_MAX, run_body, app);
}

/* ---- contexts ---- */

static void put_context(struct json_writer *w, const struct code_context *c)
{
	json_write_object(w);
	json_put_cstr(w, "id", code_context_id(c));
	json_put_cstr(w, "language", code_context_language(c)->name);
	if (code_context_cwd(c))
		json_put_cstr(w, "cwd", code_context_cwd(c));
	json_write_object_end(w);
}

static void reply_context(struct http_exchange *x, const struct code_context *c)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(CONTEXT_JSON_MAX);
	struct json_writer w;

	json_writer_init(&w, &out);
	put_context(&w, c);
	/* A path is short enough for the ceiling, however it is escaped. */
	(void)!json_writer_end(&w);
	http_reply(x, 200, "application/json", buf_view(&out));
}

/* A client that waits for its context to be ready. */
struct creation {
	struct app *app;
	struct http_exchange *exchange;
	struct code_context *context;
};

static void on_created(void *arg, const char *failure)
{
	struct creation *n = arg;

	if (failure) {
		http_reply_error(n->exchange, 500, CODE_RUNTIME, "%s", failure);
		codes_delete(n->app->codes, n->context);
	} else {
		reply_context(n->exchange, n->context);
	}
	free(n);
}

/* Nobody knows its id. */
static void on_creator_gone(struct http_exchange *x, void *arg)
{
	struct creation *n = arg;

	code_context_await(n->context, NULL, NULL);
	codes_delete(n->app->codes, n->context);
	free(n);
}

static void create_body(struct http_exchange *x, struct view text, void *arg)
{
	osb_cleanup(code_request_done) struct code_request q;
	const struct code_language *language = NULL;
	struct app *app = arg;
	struct err e = ERR_NONE;
	struct creation *n;
	const char *cwd;

	if (code_context_request_decode(text, &q, &e) < 0) {
		reply_bad_request(x, CODE_INVALID_REQUEST, &e);
		return;
	}
	n = mem_new(struct creation);
	n->app = app;
	n->exchange = x;
	if (find_listed(app, q.language, &language, &e) < 0 ||
	    make_cwd(app, http_arena(x), q.cwd, &cwd, &e) < 0 ||
	    codes_create(app->codes, language, cwd, &n->context, &e) < 0) {
		free(n);
		reply_failure(x, &e);
		return;
	}
	http_on_gone(x, on_creator_gone, n);
	code_context_await(n->context, on_created, n);
}

static void create(struct http_exchange *x, void *app)
{
	http_body_collect(x, CONTEXT_BODY_MAX, create_body, app);
}

static void list(struct http_exchange *x, void *arg)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(LIST_JSON_MAX);
	const struct code_language *language = NULL;
	struct code_context *c = NULL;
	struct app *app = arg;
	struct view name = VIEW_NONE;
	struct err e = ERR_NONE;
	struct json_writer w;

	if (url_query_get(http_arena(x), http_query(x), "language", &name) > 0 && name.len > 0 &&
	    find_listed(app, name, &language, &e) < 0) {
		reply_runtime_error(x, &e);
		return;
	}
	json_writer_init(&w, &out);
	json_write_array(&w);
	while ((c = codes_next(app->codes, c)))
		if (!language || code_context_language(c) == language)
			put_context(&w, c);
	json_write_array_end(&w);
	(void)!json_writer_end(&w);
	http_reply(x, 200, "application/json", buf_view(&out));
}

static void delete_language(struct http_exchange *x, void *arg)
{
	const struct code_language *language = NULL;
	struct app *app = arg;
	struct view name = VIEW_NONE;
	struct err e = ERR_NONE;

	if (url_query_get(http_arena(x), http_query(x), "language", &name) <= 0 || name.len == 0) {
		http_reply_error(x, 400, CODE_MISSING_QUERY,
				 "the query parameter language is missing");
		return;
	}
	if (find_listed(app, name, &language, &e) < 0) {
		reply_runtime_error(x, &e);
		return;
	}
	codes_delete_language(app->codes, language);
	reply_empty(x);
}

/* The context that the path names, or NULL after a 404. */
static struct code_context *named_context(struct http_exchange *x, struct app *app)
{
	struct view id = route_param(x, "contextId");
	struct code_context *c = codes_find(app->codes, id);

	if (!c || code_context_language(c)->flags & CODE_HIDDEN) {
		http_reply_error(x, 404, CODE_CONTEXT_NOT_FOUND, "context '" VIEW_FMT "' not found",
				 VIEW_ARG(view_first(id, 64)));
		return NULL;
	}
	return c;
}

static void get(struct http_exchange *x, void *app)
{
	struct code_context *c = named_context(x, app);

	if (c)
		reply_context(x, c);
}

static void delete (struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct code_context *c = named_context(x, app);

	if (!c)
		return;
	codes_delete(app->codes, c);
	reply_empty(x);
}

const struct route api_code_routes[] = {
	{"POST", "/code", run, 0},
	{"DELETE", "/code", api_command_interrupt, 0},
	{"POST", "/code/context", create, 0},
	{"GET", "/code/contexts", list, 0},
	{"DELETE", "/code/contexts", delete_language, 0},
	{"GET", "/code/contexts/{contextId}", get, 0},
	{"DELETE", "/code/contexts/{contextId}", delete, 0},
	{0},
};
