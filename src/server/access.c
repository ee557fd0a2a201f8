/*
 * server/access.c - what every request passes, in this order: gateway, request id, CORS, load, API
 * key, route.
 */
#include <string.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/num.h"
#include "base/rand.h"
#include "net/http_server.h"
#include "server/app.h"
#include "server/config.h"
#include "server/ingress.h"
#include "server/routes.h"

#define REQUEST_ID_MAX 128

/* clang-format off */
#define BOTH                                                                                       \
	api_sandboxes_routes, api_list_routes, api_endpoints_routes, api_proxy_routes,             \
	api_diagnostics_routes, api_snapshots_routes, api_volumes_routes, api_images_routes, \
	api_image_files_routes, api_network_routes, api_tunnel_routes, api_unsupported_routes
/* clang-format on */

/* What is below one prefix alone is unknown below the other, whatever the method. */
static const struct route *const root_tables[] = {BOTH, api_misc_routes, NULL};
static const struct route *const v1_tables[] = {BOTH, api_reports_routes, NULL};

/* ---- phases: each returns false when it has answered ---- */

static bool add_request_id(struct http_exchange *x, struct app *app)
{
	char made[RAND_HEX_LEN + 1];
	struct view id = VIEW_NONE;

	(void)app;
	if (http_header(x, "X-Request-ID", &id))
		id = view_first(view_trim(id), REQUEST_ID_MAX);
	if (id.len == 0) {
		rand_hex(made);
		id = view_of(made);
	}
	http_reply_header(x, "X-Request-ID", id);
	return true;
}

static bool handle_cors(struct http_exchange *x, struct app *app)
{
	struct view origin, wanted = VIEW_NONE;

	(void)app;
	if (!http_header(x, "Origin", &origin))
		return true;
	http_reply_header(x, "Access-Control-Allow-Origin", origin);
	http_reply_header(x, "Access-Control-Allow-Credentials", VIEW("true"));
	http_reply_header(x, "Access-Control-Expose-Headers",
			  VIEW("X-Request-ID, OPEN-SANDBOX-ORIGIN"));
	http_reply_header(x, "Vary", VIEW("Origin"));
	if (!view_is(http_head(x)->method, "OPTIONS") ||
	    !http_header(x, "Access-Control-Request-Method", &wanted))
		return true;
	http_reply_header(x, "Access-Control-Allow-Methods",
			  VIEW("DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"));
	if (http_header(x, "Access-Control-Request-Headers", &wanted))
		http_reply_header(x, "Access-Control-Allow-Headers", wanted);
	http_reply_header(x, "Access-Control-Max-Age", VIEW("600"));
	http_reply(x, 200, "text/plain; charset=utf-8", VIEW("OK"));
	return false;
}

static void request_over(void *arg)
{
	((struct app *)arg)->requests--;
}

static bool bound_load(struct http_exchange *x, struct app *app)
{
	int64_t limit = app->config->max_concurrent_requests;

	if (limit > 0 && app->requests >= (size_t)limit) {
		http_reply_header(x, "Retry-After", VIEW("1"));
		http_reply_error(x, 503, "SANDBOX::TOO_MANY_REQUESTS",
				 "%zu requests are under way, as many as "
				 "native.max_concurrent_requests allows; try again",
				 app->requests);
		return false;
	}
	app->requests++;
	arena_defer(http_arena(x), request_over, app);
	return true;
}

/* What is for a sandbox is none of the API's business: it has its own ids, rules and keys. */
static bool pass_previews(struct http_exchange *x, struct app *app)
{
	struct ingress *i = ingress_find(x, app);

	if (!i)
		return true;
	if (bound_load(x, app))
		ingress_pass(x, i);
	return false;
}

static struct view without_v1(struct view path)
{
	return view_starts(path, VIEW("/v1/")) ? view_skip(path, 3) : path;
}

/* Previews are opened by browsers, which have no key: "/sandboxes/{id}/proxy/{digits}" with
 * anything behind it. */
static bool is_proxy_path(struct view path)
{
	struct view rest = without_v1(path), part;
	uint64_t port;

	if (view_find_view(path, VIEW("..")) != path.len)
		return false;
	return view_split(&rest, '/', &part) && part.len == 0 && view_split(&rest, '/', &part) &&
	       view_is(part, "sandboxes") && view_split(&rest, '/', &part) && part.len > 0 &&
	       view_split(&rest, '/', &part) && view_is(part, "proxy") &&
	       view_split(&rest, '/', &part) && num_parse_u64(part, &port);
}

static bool needs_key(struct view path)
{
	static const char *const open[] = {"/health", "/version", "/openapi.json", "/docs",
					   "/redoc"};

	for (size_t i = 0; i < ARRAY_LEN(open); i++)
		if (view_starts(path, view_of(open[i])))
			return false;
	return !is_proxy_path(path);
}

static bool check_key(struct http_exchange *x, struct app *app)
{
	struct view key;

	if (!app->config->api_key || !needs_key(http_path(x)))
		return true;
	if (!http_header(x, "OPEN-SANDBOX-API-KEY", &key)) {
		http_reply_error(x, 401, "MISSING_API_KEY",
				 "the header OPEN-SANDBOX-API-KEY is missing");
		return false;
	}
	if (!bytes_equal_secret(key, view_of(app->config->api_key))) {
		http_reply_error(x, 401, "INVALID_API_KEY", "the API key is not the right one");
		return false;
	}
	return true;
}

/* "/sandboxes/" is meant as "/sandboxes"; behind a preview's port every slash counts. */
static bool redirect_slash(struct http_exchange *x, struct app *app)
{
	struct view path = http_path(x), query = http_query(x);
	char *to;

	(void)app;
	if (path.len < 2 || path.p[path.len - 1] != '/' || is_proxy_path(path))
		return true;
	to = arena_printf(http_arena(x), VIEW_FMT "%s" VIEW_FMT,
			  VIEW_ARG(view_first(path, path.len - 1)), query.len ? "?" : "",
			  VIEW_ARG(query));
	/* Two slashes in front would name another host. */
	if (!to || view_starts(path, VIEW("//")))
		return true;
	http_reply_header(x, "Location", view_of(to));
	http_reply(x, 307, NULL, VIEW_NONE);
	return false;
}

static void dispatch(struct http_exchange *x, struct app *app)
{
	struct route_match *m = arena_alloc(http_arena(x), sizeof(*m));
	struct view path = http_path(x);
	bool v1 = view_starts(path, VIEW("/v1/"));

	if (!m) {
		http_reply_error(x, 503, "SANDBOX::INTERNAL_ERROR",
				 "out of memory for this request");
		return;
	}
	route_find(v1 ? v1_tables : root_tables, http_head(x)->method, without_v1(path), m);
	http_set_user(x, m);
	if (m->route) {
		m->route->handler(x, app);
	} else if (m->path_known) {
		http_reply_header(x, "Allow", view_of(m->allow));
		http_reply_error(x, 405, "METHOD_NOT_ALLOWED", "this path takes %s", m->allow);
	} else {
		http_reply_error(x, 404, "NOT_FOUND", "there is no such path: " VIEW_FMT,
				 VIEW_ARG(view_first(path, 120)));
	}
}

void routes_handle(struct http_exchange *x, void *arg)
{
	static bool (*const phases[])(struct http_exchange * x, struct app * app) = {
		pass_previews, add_request_id, handle_cors, bound_load, check_key, redirect_slash,
	};

	for (size_t i = 0; i < ARRAY_LEN(phases); i++)
		if (!phases[i](x, arg))
			return;
	dispatch(x, arg);
}
