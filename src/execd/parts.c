/*
 * execd/parts.c - the daemon's parts in the order of their needs.
 */
#include "execd/parts.h"

#include <stdlib.h>

#include "execd/app.h"
#include "execd/command.h"
#include "execd/sessions.h"

int parts_start(struct app *app, struct err *e)
{
	app->commands = commands_new(app, &command_limits_default);
	app->sessions = sessions_new(app);
	return 0;
}

void parts_stop(struct app *app)
{
	sessions_free(app->sessions);
	commands_free(app->commands);
	free(app->bash);
	free(app->sh);
	buf_done(&app->events);
}
