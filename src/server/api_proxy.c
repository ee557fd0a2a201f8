/*
 * server/api_proxy.c - /sandboxes/{id}/proxy/{port}/...: HTTP, streams and WebSocket to ports
 * inside a sandbox.
 *
 * The connection is opened inside the sandbox's own network by the warden, or to execd's socket;
 * the rest is the same proxy that execd uses.
 */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "net/http_proxy.h"
#include "net/http_server.h"
#include "net/router.h"
#include "server/app.h"
#include "server/endpoints.h"
#include "server/exchange.h"
#include "server/failure.h"
#include "server/routes.h"
#include "server/sandboxes.h"

#define CONNECT_MS 10000
#define IDLE_MS	   0 /* streams may be silent for long; execd's pings keep theirs alive */

/* What is the server's own, what a proxy must not pass on, and what it rebuilds itself. */
static const char *const dropped[] = {
	"Authorization",
	"Cookie",
	"OPEN-SANDBOX-API-KEY",
	"OpenSandbox-Secure-Access",
	"Forwarded",
	"X-Forwarded-For",
	"X-Forwarded-Host",
	"X-Forwarded-Port",
	"X-Forwarded-Proto",
	"X-Real-IP",
	"Host",
	NULL,
};

/* A proxied exchange that waits for its connection. */
struct hop {
	struct waiting *waiting;
	struct app *app;
	uint16_t port;
};

static struct hop *hop_new(struct http_exchange *x, struct app *app, uint16_t port)
{
	struct hop *h = mem_new(struct hop);

	h->waiting = waiting_new(x, app);
	h->app = app;
	h->port = port;
	return h;
}

static void bad_gateway(struct http_exchange *x, int code, const char *message)
{
	(void)code;
	http_reply_error(x, 502, "BACKEND_CONNECTION_FAILED",
			 "the sandbox does not answer on that port: %s", message);
}

/* Everything behind the port, byte for byte, with the query. */
static char *inner_target(struct http_exchange *x)
{
	struct view path = http_path(x), query = http_query(x);
	size_t at = view_find_view(path, VIEW("/proxy/"));

	path = view_skip(path, at + sizeof("/proxy/") - 1);
	path = view_skip(path, view_find(path, '/'));
	if (path.len == 0)
		path = VIEW("/");
	return arena_printf(http_arena(x), VIEW_FMT "%s" VIEW_FMT, VIEW_ARG(path),
			    query.len ? "?" : "", VIEW_ARG(query));
}

/* Where the client sees the sandbox's "/": redirects to "/x" must stay below it. */
static char *outer_prefix(struct http_exchange *x, uint16_t port)
{
	struct view path = http_path(x);
	size_t at = view_find_view(path, VIEW("/proxy/"));

	return arena_printf(http_arena(x), VIEW_FMT "/proxy/%u", VIEW_ARG(view_first(path, at)),
			    port);
}

static void connected(void *arg, int fd, const struct err *e)
{
	struct hop *h = arg;
	struct app *app = h->app;
	uint16_t port = h->port;
	struct http_exchange *x = waiting_end(h->waiting);
	struct http_proxy_options o = {
		.target = {.fd = fd, .connect_timeout_ms = CONNECT_MS, .idle_timeout_ms = IDLE_MS},
		.drop_headers = dropped,
		.failed = bad_gateway,
	};
	struct http1_header add[4];
	struct view host = VIEW_NONE;
	char inner_host[32];
	char *target, *prefix;

	free(h);
	if (!x) {
		fd_close(fd);
		return;
	}
	if (e) {
		bad_gateway(x, e->code, e->msg);
		return;
	}
	target = inner_target(x);
	prefix = outer_prefix(x, port);
	if (!target || !prefix) {
		fd_close(fd);
		http_reply_error(x, 414, "SANDBOX::INVALID_PARAMETER", "the path is too long");
		return;
	}
	(void)http_header(x, "Host", &host);
	snprintf(inner_host, sizeof(inner_host), "127.0.0.1:%u", port);
	add[0] = (struct http1_header){VIEW("Host"), view_of(inner_host)};
	add[1] = (struct http1_header){VIEW("X-Forwarded-Host"), host};
	add[2] = (struct http1_header){VIEW("X-Forwarded-Proto"), VIEW("http")};
	add[3] = (struct http1_header){VIEW("X-Forwarded-For"), http_peer(x)};
	o.path = view_of(target);
	o.location_prefix = view_of(prefix);
	o.add_headers = add;
	o.add_headers_n = ARRAY_LEN(add);
	http_proxy(app->loop, app->proxies, x, &o);
}

static void proxy(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct runtime *r = app->runtime;
	struct failure f = FAILURE_NONE;
	struct sandbox *b;
	uint16_t port;

	if (endpoints_port(route_param(x, "port"), &port, &f) < 0) {
		failure_reply(x, &f);
		return;
	}
	b = exchange_sandbox(x, app);
	if (!b)
		return;
	if (sandbox_is_over(b)) {
		http_reply_error(x, 502, "BACKEND_CONNECTION_FAILED", "sandbox '%s' has ended",
				 b->id);
		return;
	}
	if (b->state == SANDBOX_PENDING) {
		http_reply_header(x, "Retry-After", VIEW("1"));
		http_reply_error(x, 503, "SANDBOX::PENDING", "sandbox '%s' does not run yet: %s",
				 b->id, b->message ? b->message : "it waits for its image");
		return;
	}
	sandboxes_accessed(app->sandboxes, b);
	if (port == ENDPOINTS_EXECD_PORT)
		r->ops->connect_execd(r, b->id, connected, hop_new(x, app, port));
	else
		r->ops->connect(r, b->id, port, connected, hop_new(x, app, port));
}

const struct route api_proxy_routes[] = {
	{"*", "/sandboxes/{id}/proxy/{port}", proxy, ROUTE_OPEN},
	{"*", "/sandboxes/{id}/proxy/{port}/{path...}", proxy, ROUTE_OPEN},
	{NULL, NULL, NULL, 0},
};
