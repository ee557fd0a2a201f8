/*
 * execd/code_spawn.h - starts an interpreter with its pipes, its channel and its driver's files.
 */
#pragma once

#include "base/macro.h"
#include "execd/process.h"

struct app;
struct code_language;
struct err;
struct strv;

struct code_spawned {
	struct process *process;
	int channel;  /* our end */
	int pipes[2]; /* what it prints: stdout, stderr */
};

/* `env` gets what the driver needs besides.  On success everything in *ret is the caller's. */
osb_must_check int code_spawn(struct app *app, const struct code_language *language,
			      const char *cwd, struct strv *env, process_exit_fn *exited, void *arg,
			      struct code_spawned *ret, struct err *e);
