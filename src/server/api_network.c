/*
 * server/api_network.c - clients of egress come through here.
 *
 * A sandbox without a policy is answered for: it may reach everything.  The first change of that
 * makes it a sandbox with a policy, and egress answers.
 */
#include "server/api_network.h"

#include <string.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "codec/json_writer.h"
#include "net/http_proxy.h"
#include "net/http_server.h"
#include "net/router.h"
#include "server/app.h"
#include "server/config.h"
#include "server/exchange.h"
#include "server/failure.h"
#include "server/policing.h"
#include "server/routes.h"
#include "server/sandboxes.h"
#include "server/state_dir.h"

#define CONNECT_MS 10000
#define IDLE_MS	   60000
#define TEXT_TYPE  "text/plain; charset=utf-8"

/* What is the server's own business. */
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
	API_NETWORK_TOKEN_HEADER, /* ours is added where the client's was right */
	NULL,
};

/* A request that waits for egress to have its sandbox. */
struct visit {
	struct waiting *waiting;
	struct app *app;
	char id[sizeof(((struct sandbox *)0)->id)];
	char *path;
};

static void unreachable(struct http_exchange *x, int code, const char *message)
{
	(void)code;
	http_reply_header(x, "Retry-After", VIEW("1"));
	http_reply_error(x, 503, "SANDBOX::NETWORK_POLICY_UNAVAILABLE",
			 "the filter of network policies does not answer: %s", message);
}

static void forward(struct http_exchange *x, struct app *app, const struct sandbox *b,
		    const char *path)
{
	struct http_proxy_options o = {
		.target = {.fd = -1,
			   .unix_path = "/" STATE_DIR_EGRESS_SOCKET,
			   .connect_timeout_ms = CONNECT_MS,
			   .idle_timeout_ms = IDLE_MS},
		.drop_headers = dropped,
		.failed = unreachable,
	};
	const struct http1_header add[] = {
		{VIEW("Host"), VIEW("egress")},
		{VIEW("X-Forwarded-For"), http_peer(x)},
		{VIEW("X-Forwarded-Proto"), view_of(http_scheme(x))},
		{VIEW(API_NETWORK_TOKEN_HEADER), view_of(b->spec.network.token)},
	};
	struct view query = http_query(x);
	char *target = arena_printf(http_arena(x), "/boxes/%s%s%s" VIEW_FMT, b->id, path,
				    query.len ? "?" : "", VIEW_ARG(query));

	if (!target) {
		http_reply_error(x, 414, "SANDBOX::INVALID_PARAMETER", "the path is too long");
		return;
	}
	o.path = view_of(target);
	o.add_headers = add;
	o.add_headers_n = ARRAY_LEN(add);
	http_proxy(app->loop, app->proxies, x, &o);
}

static void begun(void *arg, const struct failure *f)
{
	struct visit *v = arg;
	struct app *app = v->app;
	osb_cleanup(mem_freep) char *path = v->path;
	struct http_exchange *x = waiting_end(v->waiting);
	struct sandbox *b = sandboxes_find(app->sandboxes, view_of(v->id));

	free(v);
	if (!x)
		return;
	if (f)
		failure_reply(x, f);
	else if (!b)
		http_reply_error(x, 404, "DOCKER::SANDBOX_NOT_FOUND", "the sandbox has gone");
	else
		forward(x, app, b, path);
}

static void visit(struct http_exchange *x, struct app *app, struct sandbox *b, struct view path)
{
	struct visit *v = mem_new(struct visit);

	v->waiting = waiting_new(x, app);
	v->app = app;
	v->path = mem_strndup(path.p, path.len);
	memcpy(v->id, b->id, sizeof(v->id));
	policing_begin(app->sandboxes, b, begun, v);
}

/* ---- sandboxes without a policy ---- */

static void write_allow_all(struct json_writer *w, void *arg)
{
	const struct config *config = arg;

	json_write_object(w);
	json_put_cstr(w, "status", "ok");
	json_put_cstr(w, "mode", "allow_all");
	json_put_cstr(w, "enforcementMode", config->egress_mode);
	json_write_key(w, "policy");
	json_write_object(w);
	json_put_cstr(w, "defaultAction", "allow");
	json_write_key(w, "egress");
	json_write_array(w);
	json_write_array_end(w);
	json_write_object_end(w);
	json_write_object_end(w);
}

static void reply_text(struct http_exchange *x, int status, const char *text)
{
	http_reply(x, status, TEXT_TYPE, view_of(text));
}

static void without_policy(struct http_exchange *x, struct app *app, struct sandbox *b,
			   struct view path)
{
	bool reads = view_is(http_head(x)->method, "GET") || http_is_head(x);

	if (view_is(path, "/policy") && reads)
		exchange_reply_json(x, 200, write_allow_all, (void *)app->config);
	else if (view_is(path, "/policy"))
		visit(x, app, b, path);
	else if (view_starts(path, VIEW("/credential-vault")) && !reads)
		reply_text(x, 412, "the sandbox was created without credentialProxy.enabled\n");
	else if (view_starts(path, VIEW("/credential-vault")))
		reply_text(x, 404, "there is no credential vault\n");
	else
		reply_text(x, 404, "not found\n");
}

static bool ready(struct http_exchange *x, const struct sandbox *b)
{
	if (sandbox_is_over(b)) {
		http_reply_error(x, 502, "BACKEND_CONNECTION_FAILED", "sandbox '%s' has ended",
				 b->id);
		return false;
	}
	if (b->state == SANDBOX_PENDING) {
		http_reply_header(x, "Retry-After", VIEW("1"));
		http_reply_error(x, 503, "SANDBOX::PENDING", "sandbox '%s' does not run yet: %s",
				 b->id, b->message ? b->message : "it waits for its image");
		return false;
	}
	return true;
}

static void answer(struct http_exchange *x, struct app *app, struct sandbox *b, struct view path)
{
	if (!ready(x, b))
		return;
	if (policing_is_on(b))
		visit(x, app, b, path);
	else
		without_policy(x, app, b, path);
}

/* ---- port 18080 ---- */

static bool knows_token(struct http_exchange *x, const struct sandbox *b)
{
	struct view token;

	return http_header(x, API_NETWORK_TOKEN_HEADER, &token) &&
	       bytes_equal_secret(token, view_of(b->spec.network.token));
}

void api_network_proxy(struct http_exchange *x, struct app *app, struct sandbox *b,
		       struct view path)
{
	if (view_is(path, "/healthz")) {
		reply_text(x, 200, "ok\n");
	} else if (!knows_token(x, b)) {
		reply_text(x, 401, "unauthorized\n");
	} else {
		sandboxes_accessed(app->sandboxes, b);
		answer(x, app, b, path);
	}
}

/* ---- /networkpolicy: the API key is enough ---- */

static void network_policy(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct sandbox *b = exchange_sandbox(x, app);

	if (b)
		answer(x, app, b, VIEW("/policy"));
}

const struct route api_network_routes[] = {
	{"GET", "/sandboxes/{id}/networkpolicy", network_policy, 0},
	{"PUT", "/sandboxes/{id}/networkpolicy", network_policy, 0},
	{"PATCH", "/sandboxes/{id}/networkpolicy", network_policy, 0},
	{"DELETE", "/sandboxes/{id}/networkpolicy", network_policy, 0},
	{NULL, NULL, NULL, 0},
};
