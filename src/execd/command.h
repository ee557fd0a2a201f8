/*
 * execd/command.h - commands: started, streamed, interrupted, remembered.
 *
 * A command runs until its own process ends; what it wrote until then is delivered and the stream
 * is closed.  A client that leaves does not end it.  How it ended is kept for a day.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"
#include "base/view.h"

struct app;
struct command;
struct commands;
struct err;
struct http_exchange;

struct command_limits {
	uint64_t keep_ms;      /* how long the end of a command is remembered */
	size_t finished_n;     /* beyond this many, the oldest is forgotten earlier */
	size_t finished_bytes; /* or beyond this much memory */
	size_t running_n;      /* more at a time are refused */
	unsigned interrupt_ms; /* from SIGTERM to SIGKILL */
};

extern const struct command_limits command_limits_default;

struct command_spec {
	struct view content;	/* what a status shows */
	const char *impossible; /* NULL, or why it cannot be started */
	char *const *argv;
	const char *path; /* the file to execute, or NULL: argv[0] by `search_path` */
	const char *search_path;
	char *const *env;
	const char *cwd;     /* NULL: ours */
	uint64_t timeout_ms; /* 0 = none */
	bool background;
	bool has_ids;
	uid_t uid;
	gid_t gid;
	const gid_t *groups;
	size_t groups_n;
};

struct commands *commands_new(struct app *app, const struct command_limits *limits);
void commands_free(struct commands *cs); /* accepts NULL; what runs is left to the reaper */

/* Starts a command and answers `x` with its stream of events. */
void commands_run(struct commands *cs, struct http_exchange *x, const struct command_spec *spec);

/* NULL when unknown (or forgotten). */
struct command *commands_find(struct commands *cs, struct view id);

struct command_status {
	const char *id;
	struct view content;
	bool background;
	bool running;
	int exit_code;	   /* when not running */
	const char *error; /* NULL: none */
	uint64_t started_ns, finished_ns;
};

void command_status(const struct command *c, struct command_status *ret);

/* SIGTERM to its group, SIGKILL a little later; answers `x` when it has ended.  -ESRCH when it does
 * not run. */
osb_must_check int command_interrupt(struct command *c, struct http_exchange *x, struct err *e);

/* The log of a background command: an fd of its own and how long the log is now. */
osb_must_check int command_log(struct command *c, int *ret_fd, uint64_t *ret_size, struct err *e);
