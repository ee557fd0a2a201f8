/*
 * server/api_unsupported.c - parts of the protocol that this server does not have: said plainly,
 * never faked.
 */
#include "net/http_server.h"
#include "server/routes.h"

static void no_pools(struct http_exchange *x, void *app)
{
	(void)app;
	http_reply_error(x, 501, "KUBERNETES::POOL_NOT_SUPPORTED",
			 "pools are a feature of the Kubernetes runtime");
}

static void no_templates(struct http_exchange *x, void *app)
{
	(void)app;
	http_reply_error(x, 501, "FSB::API_NOT_SUPPORTED",
			 "templates are a feature of the microVM runtime");
}

const struct route api_unsupported_routes[] = {
	{"GET", "/pools", no_pools, 0},
	{"POST", "/pools", no_pools, 0},
	{"GET", "/pools/{name}", no_pools, 0},
	{"PUT", "/pools/{name}", no_pools, 0},
	{"DELETE", "/pools/{name}", no_pools, 0},
	{"GET", "/templates", no_templates, 0},
	{"POST", "/templates", no_templates, 0},
	{"GET", "/templates/{templateId}", no_templates, 0},
	{"DELETE", "/templates/{templateId}", no_templates, 0},
	{NULL, NULL, NULL, 0},
};
