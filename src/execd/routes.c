/*
 * execd/routes.c - the table of tables, and who may pass.
 */
#include "execd/routes.h"

#include "execd/auth.h"

/* clang-format off */
static const struct route *const tables[] = {
	api_misc_routes,
	api_command_routes,
	api_session_routes,
	api_code_routes,
	api_files_routes,
	api_metrics_routes,
	api_pty_routes,
	api_isolated_routes,
	api_isolated_files_routes,
	api_proxy_routes,
	NULL,
};
/* clang-format on */

void routes_handle(struct http_exchange *x, void *app)
{
	if (auth_check(app, x))
		route_dispatch(x, tables, app);
}
