/*
 * execd/api_proxy.c - /proxy/{port}/...: what listens on the sandbox's own loopback, from outside.
 */
#include "base/arena.h"
#include "base/num.h"
#include "execd/app.h"
#include "execd/auth.h"
#include "execd/options.h"
#include "execd/routes.h"
#include "net/http_proxy.h"
#include "net/http_server.h"
#include "net/router.h"

#define CONNECT_MS (10 * 1000)

static void bad_gateway(struct http_exchange *x, int code, const char *message)
{
	http_reply(x, 502, "text/plain; charset=utf-8", VIEW("Bad Gateway\n"));
}

static bool parse_port(struct view text, uint16_t *ret)
{
	uint32_t n;

	if (!num_parse_u32(text, &n) || n == 0 || n > UINT16_MAX)
		return false;
	*ret = (uint16_t)n;
	return true;
}

/* The target behind "/proxy/{port}", as the client wrote it, with its query. */
static char *upstream_target(struct http_exchange *x)
{
	struct view path = view_skip(http_path(x), sizeof("/proxy/") - 1);
	struct view query = http_query(x);

	path = view_skip(path, view_find(path, '/'));
	if (path.len == 0)
		path = VIEW("/");
	return arena_printf(http_arena(x), VIEW_FMT "%s" VIEW_FMT, VIEW_ARG(path),
			    query.len ? "?" : "", VIEW_ARG(query));
}

/* Who asks: whom an earlier proxy named first, else the one who is connected. */
static struct view client_address(struct http_exchange *x)
{
	struct view v = VIEW_NONE;

	if (http_header(x, "X-Forwarded-For", &v) && view_trim(v).len)
		return view_trim(view_first(v, view_find(v, ',')));
	if (http_header(x, "X-Real-IP", &v) && view_trim(v).len)
		return view_trim(v);
	v = http_peer(x);
	return v.len ? v : VIEW("127.0.0.1");
}

static void proxy(struct http_exchange *x, void *arg)
{
	static const char *const drop[] = {"X-Forwarded-For", "X-Forwarded-Proto",
					   "X-Forwarded-Host", NULL};
	/* The token opens execd, and is nobody else's business. */
	static const char *const drop_token[] = {"X-Forwarded-For", "X-Forwarded-Proto",
						 "X-Forwarded-Host", AUTH_HEADER, NULL};
	struct app *app = arg;
	struct http1_header add[] = {
		{VIEW("X-Forwarded-For"), client_address(x)},
		{VIEW("X-Forwarded-Proto"), VIEW("http")},
	};
	struct http_proxy_options o = {
		.target = {.ip = "127.0.0.1", .fd = -1, .connect_timeout_ms = CONNECT_MS},
		.add_headers = add,
		.add_headers_n = ARRAY_LEN(add),
		.failed = bad_gateway,
	};
	char *target = upstream_target(x);

	if (!parse_port(route_param(x, "port"), &o.target.port)) {
		http_reply(x, 400, "text/plain; charset=utf-8",
			   VIEW("the path must be /proxy/PORT/..., with a port from 1 to 65535\n"));
		return;
	}
	if (!target) {
		http_reply(x, 414, "text/plain; charset=utf-8", VIEW("the path is too long\n"));
		return;
	}
	o.path = view_of(target);
	o.drop_headers =
		app->options->access_token && o.target.port != http_server_port(app->server)
			? drop_token
			: drop;
	http_proxy(app->loop, app->proxies, x, &o);
}

const struct route api_proxy_routes[] = {
	{"*", "/proxy/{port}", proxy, 0},
	{"*", "/proxy/{port}/{path...}", proxy, 0},
	{0},
};
