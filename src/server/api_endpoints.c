/*
 * server/api_endpoints.c - where a port of a sandbox can be reached.
 *
 * Sandboxes publish no ports: every endpoint is a path of this server, which opens a connection
 * inside.
 */
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "codec/json_writer.h"
#include "codec/url.h"
#include "net/http_server.h"
#include "server/api_network.h"
#include "server/app.h"
#include "server/config.h"
#include "server/endpoints.h"
#include "server/exchange.h"
#include "server/failure.h"
#include "server/request_fields.h"
#include "server/routes.h"
#include "server/sandboxes.h"

struct query {
	bool use_server_proxy, has_expires;
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

static int read_query(struct http_exchange *x, struct query *q, struct failure *f)
{
	struct view rest = http_query(x), name, value;
	int64_t expires;
	int r;

	*q = (struct query){0};
	while ((r = url_query_next(http_arena(x), &rest, &name, &value)) > 0) {
		if (view_is(name, "use_server_proxy") &&
		    read_bool(value, &q->use_server_proxy, f) < 0)
			return -1;
		if (!view_is(name, "expires"))
			continue;
		if (!num_parse_i64(value, &expires))
			return failure_set(f, 422, REQUEST_CODE, "expires must be Unix seconds");
		q->has_expires = true;
	}
	return r < 0 ? failure_set(f, 422, REQUEST_CODE, "the query is malformed") : 0;
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

struct endpoint {
	const char *text;
	const char *header, *token; /* or NULL */
};

static void write_endpoint(struct json_writer *w, void *arg)
{
	const struct endpoint *ep = arg;

	json_write_object(w);
	json_put_cstr(w, "endpoint", ep->text);
	if (ep->token) {
		json_write_key(w, "headers");
		json_write_object(w);
		json_put_cstr(w, ep->header, ep->token);
		json_write_object_end(w);
	}
	json_write_object_end(w);
}

static void get_endpoint(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct failure f = FAILURE_NONE;
	struct endpoint ep = {0};
	struct sandbox *b;
	struct query q;
	uint16_t port = 0;

	if (endpoints_port(route_param(x, "port"), &port, &f) < 0 || read_query(x, &q, &f) < 0) {
		failure_reply(x, &f);
		return;
	}
	if (q.has_expires) {
		if (q.use_server_proxy)
			http_reply_error(x, 400, REQUEST_CODE,
					 "expires cannot be used with use_server_proxy");
		else
			http_reply_error(
				x, 400, "SANDBOX::API_NOT_SUPPORTED",
				"this server gives no signed routes: expires cannot be used");
		return;
	}
	b = exchange_sandbox(x, app);
	if (!b)
		return;
	ep.text = arena_printf(http_arena(x), VIEW_FMT "/sandboxes/%s/proxy/%u",
			       VIEW_ARG(public_base(x, app->config)), b->id, port);
	if (port == ENDPOINTS_EXECD_PORT && app->config->exec_token) {
		ep.header = ENDPOINTS_TOKEN_HEADER;
		ep.token = b->token;
	} else if (port == API_NETWORK_PORT) {
		ep.header = API_NETWORK_TOKEN_HEADER;
		ep.token = b->spec.network.token;
	}
	exchange_reply_json(x, 200, write_endpoint, &ep);
}

const struct route api_endpoints_routes[] = {
	{"GET", "/sandboxes/{id}/endpoints/{port}", get_endpoint, 0},
	{NULL, NULL, NULL, 0},
};
