/*
 * execd/entrypoint.h - the program that the sandbox was made for.
 *
 * Signals are passed on to it; its end is written to the status file and ends the daemon.
 */
#pragma once

#include "base/macro.h"

struct app;
struct entrypoint;
struct err;

/* `code`: what the daemon should exit with: the program's own, or 128 + signal. */
typedef void entrypoint_ended_fn(void *arg, int code);

/* On failure *ret_code is what to exit with: 127 when it is not there, else 126. */
osb_must_check int entrypoint_start(struct app *app, entrypoint_ended_fn *ended, void *arg,
				    struct entrypoint **ret, int *ret_code, struct err *e);
void entrypoint_signal(struct entrypoint *p, int signum);
void entrypoint_free(struct entrypoint *p); /* accepts NULL */
