/*
 * server/api_endpoints.c - where a port of a sandbox can be reached, and with which headers.
 *
 * Sandboxes publish no ports: every endpoint is a path of this server, or a name of its gateway;
 * the server opens a connection inside.
 */
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/num.h"
#include "codec/json_writer.h"
#include "codec/url.h"
#include "net/http_server.h"
#include "policy/preview.h"
#include "server/api_network.h"
#include "server/app.h"
#include "server/config.h"
#include "server/config_ingress.h"
#include "server/endpoints.h"
#include "server/exchange.h"
#include "server/failure.h"
#include "server/request_fields.h"
#include "server/routes.h"
#include "server/sandboxes.h"

struct query {
	bool use_server_proxy, has_expires;
	bool expires_is_wrong; /* a number, but none that a route can have */
	uint64_t expires;      /* Unix seconds */
};

static int read_bool(struct view text, bool *ret, struct failure *f)
{
	static const struct {
		const char *word;
		bool value;
	} words[] = {
		{"true", true},	  {"1", true},	{"yes", true}, {"on", true},
		{"false", false}, {"0", false}, {"no", false}, {"off", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (view_iis(text, words[i].word)) {
			*ret = words[i].value;
			return 0;
		}
	}
	return failure_set(f, 422, REQUEST_CODE, "use_server_proxy must be true or false");
}

static bool is_number(struct view text)
{
	if (view_starts(text, VIEW("-")))
		text = view_skip(text, 1);
	for (size_t i = 0; i < text.len; i++)
		if (text.p[i] < '0' || text.p[i] > '9')
			return false;
	return text.len > 0;
}

static int read_expires(struct view text, struct query *q, struct failure *f)
{
	if (!is_number(text))
		return failure_set(f, 422, REQUEST_CODE, "expires must be Unix seconds");
	q->has_expires = true;
	q->expires_is_wrong = !num_parse_u64(text, &q->expires);
	return 0;
}

static int read_query(struct http_exchange *x, struct query *q, struct failure *f)
{
	struct view rest = http_query(x), name, value;
	int r;

	*q = (struct query){0};
	while ((r = url_query_next(http_arena(x), &rest, &name, &value)) > 0) {
		if (view_is(name, "use_server_proxy") &&
		    read_bool(value, &q->use_server_proxy, f) < 0)
			return -1;
		if (view_is(name, "expires") && read_expires(value, q, f) < 0)
			return -1;
	}
	return r < 0 ? failure_set(f, 422, REQUEST_CODE, "the query is malformed") : 0;
}

/* Can a route be signed that is good until then? */
static int check_expires(const struct query *q, const struct config *c, struct failure *f)
{
	if (!q->has_expires)
		return 0;
	if (q->use_server_proxy)
		return failure_set(f, 400, REQUEST_CODE,
				   "expires cannot be used with use_server_proxy");
	if (!c->ingress_gateway)
		return failure_set(f, 400, "SANDBOX::API_NOT_SUPPORTED",
				   "this server has no gateway: expires cannot be used");
	if (c->ingress_keys_n == 0)
		return failure_set(f, 400, REQUEST_CODE,
				   "this server has no ingress.secure_access: expires cannot be "
				   "used");
	if (q->expires_is_wrong || q->expires <= clock_wall_ms() / 1000)
		return failure_set(f, 400, REQUEST_CODE, "expires must lie in the future");
	return 0;
}

int endpoints_port(struct view text, uint16_t *ret, struct failure *f)
{
	int64_t port;

	if (!num_parse_i64(text, &port))
		return failure_set(f, 422, REQUEST_CODE, "the port must be a number");
	if (port < 1 || port > UINT16_MAX)
		return failure_set(f, 400, "DOCKER::INVALID_PORT",
				   "the port must be from 1 to 65535");
	*ret = (uint16_t)port;
	return 0;
}

/* How clients reach this server: as the operator says, or as this one just did. */
static struct view public_base(struct http_exchange *x, const struct config *config)
{
	struct view base = VIEW_NONE;
	size_t scheme;

	if (!config->eip) {
		(void)http_header(x, "Host", &base);
		return base;
	}
	base = view_of(config->eip);
	scheme = view_find_view(base, VIEW("://"));
	if (scheme < base.len)
		base = view_skip(base, scheme + 3);
	while (view_ends(base, VIEW("/")))
		base = view_first(base, base.len - 1);
	return base;
}

#define HEADERS_MAX 4

struct endpoint {
	const char *text;
	struct {
		const char *name, *value;
	} headers[HEADERS_MAX];
	size_t headers_n;
};

static void add_header(struct endpoint *ep, const char *name, const char *value)
{
	if (!value)
		return;
	ep->headers[ep->headers_n].name = name;
	ep->headers[ep->headers_n++].value = value;
}

static void write_endpoint(struct json_writer *w, void *arg)
{
	const struct endpoint *ep = arg;

	json_write_object(w);
	json_put_cstr(w, "endpoint", ep->text);
	if (ep->headers_n) {
		json_write_key(w, "headers");
		json_write_object(w);
		for (size_t i = 0; i < ep->headers_n; i++)
			json_put_cstr(w, ep->headers[i].name, ep->headers[i].value);
		json_write_object_end(w);
	}
	json_write_object_end(w);
}

static void name_by_gateway(struct http_exchange *x, const struct config *c,
			    const struct route_to *to, struct endpoint *ep)
{
	enum preview_mode mode = (enum preview_mode)c->gateway_mode;

	ep->text = preview_endpoint(http_arena(x), mode, view_of(c->gateway_address), to);
	if (mode == PREVIEW_HEADER)
		add_header(ep, PREVIEW_TO_HEADER, preview_label(http_arena(x), to));
}

static void resolve(struct http_exchange *x, const struct app *app, const struct sandbox *b,
		    const struct query *q, uint16_t port, struct endpoint *ep)
{
	const struct config *c = app->config;
	struct route_to to = {.id = view_of(b->id), .port = port, .is_signed = q->has_expires};
	char expires[ROUTE_B36_MAX], signature[ROUTE_SIGNATURE + 1];

	if (q->has_expires) {
		route_sign(config_active_key(c), to.id, port, q->expires, signature);
		route_b36_format(q->expires, expires);
		to.expires = view_of(expires);
		to.signature = view_of(signature);
	}
	if (c->ingress_gateway && !q->use_server_proxy)
		name_by_gateway(x, c, &to, ep);
	else
		ep->text = arena_printf(http_arena(x), VIEW_FMT "/sandboxes/%s/proxy/%u",
					VIEW_ARG(public_base(x, c)), b->id, port);
	if (port == ENDPOINTS_EXECD_PORT && c->exec_token)
		add_header(ep, ENDPOINTS_TOKEN_HEADER, b->token);
	if (port == API_NETWORK_PORT)
		add_header(ep, API_NETWORK_TOKEN_HEADER, b->spec.network.token);
	if (!to.is_signed)
		add_header(ep, PREVIEW_SECURE_HEADER, b->spec.secure_token);
}

static void get_endpoint(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct failure f = FAILURE_NONE;
	struct endpoint ep = {0};
	struct sandbox *b;
	struct query q;
	uint16_t port = 0;

	if (endpoints_port(route_param(x, "port"), &port, &f) < 0 || read_query(x, &q, &f) < 0 ||
	    check_expires(&q, app->config, &f) < 0) {
		failure_reply(x, &f);
		return;
	}
	b = exchange_sandbox(x, app);
	if (!b)
		return;
	resolve(x, app, b, &q, port, &ep);
	if (ep.text)
		exchange_reply_json(x, 200, write_endpoint, &ep);
	else
		http_reply_error(x, 500, "SANDBOX::INTERNAL_ERROR", "the endpoint is too long");
}

const struct route api_endpoints_routes[] = {
	{"GET", "/sandboxes/{id}/endpoints/{port}", get_endpoint, 0},
	{NULL, NULL, NULL, 0},
};
