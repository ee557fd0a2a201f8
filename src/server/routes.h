/*
 * server/routes.h - every route of the server, one table per file of handlers.
 */
#pragma once

#include "net/router.h"

struct app;
struct http_exchange;

enum route_flags {
	ROUTE_OPEN = 1,	     /* no API key needed */
	ROUTE_ROOT_ONLY = 2, /* not below /v1 */
	ROUTE_V1_ONLY = 4,   /* only below /v1 */
};

extern const struct route api_sandboxes_routes[];
extern const struct route api_list_routes[];
extern const struct route api_endpoints_routes[];
extern const struct route api_proxy_routes[];
extern const struct route api_tunnel_routes[];
extern const struct route api_diagnostics_routes[];
extern const struct route api_snapshots_routes[];
extern const struct route api_volumes_routes[];
extern const struct route api_images_routes[];
extern const struct route api_image_files_routes[];
extern const struct route api_network_routes[];
extern const struct route api_unsupported_routes[];
extern const struct route api_misc_routes[];	/* not below /v1 */
extern const struct route api_reports_routes[]; /* only below /v1 */

/* Answers a request: request id, CORS, key, route. */
void routes_handle(struct http_exchange *x, void *app);
