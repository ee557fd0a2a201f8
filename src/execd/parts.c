/*
 * execd/parts.c - the daemon's parts in the order of their needs.
 */
#include "execd/parts.h"

#include <stdlib.h>

#include "execd/app.h"
#include "execd/code.h"
#include "execd/command.h"
#include "execd/isolated.h"
#include "execd/ptys.h"
#include "execd/sessions.h"
#include "net/http_proxy.h"

int parts_start(struct app *app, struct err *e)
{
	metrics_base_init(&app->metrics);
	app->commands = commands_new(app, &command_limits_default);
	app->sessions = sessions_new(app);
	list_init(&app->ending_drivers);
	app->codes = codes_new(app);
	app->ptys = ptys_new(app);
	app->proxies = http_proxies_new();
	return isolated_new(app, &app->isolated, e);
}

void parts_stop(struct app *app)
{
	isolated_free(app->isolated);
	http_proxies_free(app->proxies);
	ptys_free(app->ptys);
	codes_free(app->codes);
	sessions_free(app->sessions);
	commands_free(app->commands);
	free(app->bash);
	free(app->sh);
	buf_done(&app->events);
}
