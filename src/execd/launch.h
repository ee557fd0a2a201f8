/*
 * execd/launch.h - how a sandbox comes up: listen, hook before the start, entrypoint, other hooks.
 *
 * With --start-fd all of it waits for the start file; without, the arguments say everything.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"

struct app;
struct err;
struct launch;
struct options;

/* The sandbox is over; `code` is what the daemon exits with.  May come before launch_new() has
 * returned. */
typedef void launch_ended_fn(void *arg, int code);

/* Fails only when the daemon cannot listen.  A start file changes `o`. */
osb_must_check int launch_new(struct app *app, struct options *o, launch_ended_fn *ended, void *arg,
			      struct launch **ret, struct err *e);

/* Passes the signal on to the entrypoint; false: there is none. */
bool launch_signal(struct launch *l, int signum);
void launch_free(struct launch *l); /* accepts NULL */
