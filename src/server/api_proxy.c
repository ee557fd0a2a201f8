/*
 * server/api_proxy.c - ports of sandboxes as paths of this server: below
 * /sandboxes/{id}/proxy/{port}, with and without /v1.
 */
#include <string.h>

#include "base/arena.h"
#include "net/http_server.h"
#include "server/app.h"
#include "server/endpoints.h"
#include "server/failure.h"
#include "server/ingress.h"
#include "server/routes.h"

/* Everything behind the port, byte for byte, with the query; in front of it is the prefix. */
static bool split_target(struct http_exchange *x, struct preview *p)
{
	struct view target = ingress_target(x), rest;
	size_t at = view_find_view(target, VIEW("/proxy/"));

	rest = view_skip(target, at + sizeof("/proxy/") - 1);
	while (rest.len && rest.p[0] != '/' && rest.p[0] != '?')
		rest = view_skip(rest, 1);
	p->prefix = view_first(target, target.len - rest.len);
	p->target = rest.len ? rest : VIEW("/");
	return target.p != NULL;
}

static void proxy(struct http_exchange *x, void *arg)
{
	struct ingress *i = arena_alloc(http_arena(x), sizeof(*i));
	struct failure f = FAILURE_NONE;

	if (!i || !split_target(x, &i->preview)) {
		http_reply_error(x, 414, "SANDBOX::INVALID_PARAMETER", "the path is too long");
		return;
	}
	i->app = arg;
	i->preview.to.id = route_param(x, "id");
	if (endpoints_port(route_param(x, "port"), &i->preview.to.port, &f) < 0)
		failure_reply(x, &f);
	else
		ingress_pass(x, i);
}

const struct route api_proxy_routes[] = {
	{"*", "/sandboxes/{id}/proxy/{port}", proxy, ROUTE_OPEN},
	{"*", "/sandboxes/{id}/proxy/{port}/{path...}", proxy, ROUTE_OPEN},
	{NULL, NULL, NULL, 0},
};
