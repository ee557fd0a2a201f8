/*
 * execd/routes.h - every route of the daemon, part by part.
 */
#pragma once

#include "net/router.h"

struct http_exchange;

extern const struct route api_misc_routes[];
extern const struct route api_code_routes[];
extern const struct route api_command_routes[];
extern const struct route api_session_routes[];
extern const struct route api_files_routes[];
extern const struct route api_metrics_routes[];
extern const struct route api_pty_routes[];
extern const struct route api_proxy_routes[];
extern const struct route api_isolated_routes[];
extern const struct route api_isolated_files_routes[];

/* DELETE ?id=: interrupts a run of code or a command, or closes a session. */
void api_command_interrupt(struct http_exchange *x, void *app);

/* The handler of the daemon's server: `app` is a struct app. */
void routes_handle(struct http_exchange *x, void *app);
