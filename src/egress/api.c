/*
 * egress/api.c - which box a request is about, whether it may be made, and who answers it.
 */
#include "egress/api.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "egress/api_int.h"
#include "egress/box.h"
#include "egress/egress.h"
#include "egress/vault_proxy.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/router.h"

#define AUTH_HEADER "OPENSANDBOX-EGRESS-AUTH"
#define VAULT	    "/credential-vault"
#define BOXES	    "/boxes/"
#define CONNECTIONS 1024

/* ---- answers ---- */

void api_reply_text(struct http_exchange *x, int status, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	n = n < 0 ? 0 : MIN(n, (int)sizeof(text) - 2);
	text[n] = '\n';
	http_reply_header(x, "X-Content-Type-Options", VIEW("nosniff"));
	http_reply(x, status, "text/plain; charset=utf-8", view_mem(text, (size_t)n + 1));
}

void api_reply_json(struct http_exchange *x, struct buf *body)
{
	if (buf_append_char(body, '\n') < 0)
		api_reply_text(x, 500, "the answer is too large");
	else
		http_reply(x, 200, "application/json", buf_view(body));
}

/* ---- small handlers ---- */

static void get_health(struct http_exchange *x, void *app)
{
	(void)app;
	http_reply(x, 200, "text/plain; charset=utf-8", VIEW("ok"));
}

static void call_vault(struct http_exchange *x, void *app)
{
	const struct api_target *t = app;
	struct view path = http_path(x);
	size_t at = view_find_view(path, VIEW(VAULT));
	char *rest = arena_str(http_arena(x), view_skip(path, at + sizeof(VAULT) - 1));

	if (rest)
		vault_proxy_api(t->box, x, rest);
	else
		api_reply_text(x, 503, "out of memory for this request");
}

enum { ROUTE_OPEN = 1 }; /* needs no token */

static const struct route routes[] = {
	{"GET", "/healthz", get_health, ROUTE_OPEN},
	{"POST", VAULT, call_vault, 0},
	{"GET", VAULT, call_vault, 0},
	{"PATCH", VAULT, call_vault, 0},
	{"DELETE", VAULT, call_vault, 0},
	{"GET", VAULT "/credentials", call_vault, 0},
	{"GET", VAULT "/credentials/{name}", call_vault, 0},
	{"GET", VAULT "/bindings", call_vault, 0},
	{"GET", VAULT "/bindings/{name}", call_vault, 0},
	{"GET", VAULT "/_active", call_vault, ROUTE_OPEN},
	{NULL, NULL, NULL, 0},
};

static const struct route *const tables[] = {routes, api_policy_routes, api_event_routes, NULL};

/* ---- requests ---- */

struct box *api_box(struct api *a, const char *id)
{
	return a->only ? a->only : map_get(a->egress->boxes, view_of(id));
}

/* What is behind the box's part of the path; NULL in *ret if there is no such box. */
static struct view find_box(struct api *a, struct view path, struct box **ret)
{
	size_t end;

	*ret = a->only;
	if (a->only)
		return path;
	if (!view_starts(path, VIEW(BOXES)))
		return VIEW_NONE;
	path = view_skip(path, sizeof(BOXES) - 1);
	end = view_find(path, '/');
	*ret = map_get(a->egress->boxes, view_first(path, end));
	return view_skip(path, end);
}

static bool is_authorized(const struct box *b, struct http_exchange *x)
{
	struct view shown;

	return !b->token[0] || (http_header(x, AUTH_HEADER, &shown) &&
				bytes_equal_secret(shown, view_of(b->token)));
}

static void dispatch(struct api_target *t, struct http_exchange *x, struct view path,
		     struct route_match *m)
{
	route_find(tables, http_head(x)->method, path, m);
	http_set_user(x, m);
	if (!m->path_known) {
		api_reply_text(x, 404, "404 page not found");
	} else if (!(m->route && m->route->flags & ROUTE_OPEN) && !is_authorized(t->box, x)) {
		api_reply_text(x, 401, "unauthorized");
	} else if (!m->route) {
		http_reply_header(x, "Allow", view_of(m->allow));
		api_reply_text(x, 405, "method not allowed");
	} else {
		m->route->handler(x, t);
	}
}

static void handle(struct http_exchange *x, void *app)
{
	struct api *a = app;
	struct api_target *t = arena_alloc(http_arena(x), sizeof(*t));
	struct route_match *m = arena_alloc(http_arena(x), sizeof(*m));
	struct box *b;
	struct view path = find_box(a, http_path(x), &b);

	if (!t || !m) {
		api_reply_text(x, 503, "out of memory for this request");
	} else if (b) {
		*t = (struct api_target){a, b};
		dispatch(t, x, path, m);
	} else if (view_is(http_path(x), "/healthz")) {
		get_health(x, NULL);
	} else {
		api_reply_text(x, 404, "there is no such sandbox, or it has no policy");
	}
}

/* ---- the API ---- */

int api_new(struct egress *g, int listen_fd, struct box *only, struct err *e)
{
	struct http_limits limits = http_limits_default;
	struct api *a = mem_new(struct api);
	int r;

	limits.connections = CONNECTIONS;
	limits.secret = true;
	a->egress = g;
	a->only = only;
	list_init(&a->changes);
	a->busy = map_new();
	a->next = loop_task_new(g->loop, api_policy_begin_next, a);
	r = http_server_new(g->loop, &limits, handle, a, &a->server, e);
	if (r < 0)
		fd_close(listen_fd);
	else
		r = http_server_listen_fd(a->server, listen_fd, e);
	if (r < 0) {
		api_free(a);
		return r;
	}
	g->api = a;
	return 0;
}

void api_free(struct api *a)
{
	if (!a)
		return;
	api_policy_end(a);
	http_server_free(a->server);
	loop_task_free(a->next);
	map_free(a->busy);
	free(a);
}
