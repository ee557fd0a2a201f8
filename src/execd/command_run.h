/*
 * execd/command_run.h - what only a running command needs: process, pipes, stream, timer.
 *
 * A run is over when its process has ended and its stream was closed (or the client left); then it
 * frees itself.
 */
#pragma once

struct app;
struct command_run;
struct command_spec;
struct http_exchange;

/* Called once, when the process has ended or could not be started.  `error`: how, in words; or
 * NULL. What the run still has to deliver it delivers by itself: its owner must forget it. */
typedef void command_run_ended_fn(void *arg, int exit_code, const char *error);

/*
 * Starts a command and answers `x`.  Its output goes to `log_fd` (borrowed) if it runs in the
 * background.  NULL when it could not be started: `ended` was called.
 */
struct command_run *command_run_start(struct app *app, struct http_exchange *x, const char *id,
				      const struct command_spec *spec, int log_fd,
				      command_run_ended_fn *ended, void *arg);

/* SIGTERM to the group, SIGKILL after `grace_ms`; its exit code will be -1. */
void command_run_interrupt(struct command_run *r, unsigned grace_ms);

/* Lets go of one whose process has not ended: the reaper sees to that. */
void command_run_free(struct command_run *r);
