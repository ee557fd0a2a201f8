/*
 * execd/code_driver.h - one interpreter process and the driver in it.
 *
 * What it prints and what it reports come to the owner in the order in which they happened, and
 * only as fast as the owner takes them.  The process leads a group of its own; when it ends, what
 * is left of the group is killed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/strv.h"
#include "base/view.h"

struct app;
struct code_driver;
struct code_language;
struct code_message;
struct err;

enum code_stream_name { CODE_STDOUT, CODE_STDERR, CODE_STREAMS_ };

struct code_driver_events {
	/* Bytes that it printed.  False: no more until code_driver_resume(). */
	bool (*output)(void *arg, enum code_stream_name stream, struct view bytes);
	/* A message; everything printed before it was delivered.  False: as above.  The driver may
	 * be stopped in it. */
	bool (*message)(void *arg, const struct code_message *m);
	/* The process has ended; everything it said was delivered.  `status` as of waitpid(2);
	 * `killed`: why we ended it, or NULL.  The driver must be freed in it, or soon after. */
	void (*ended)(void *arg, int status, const char *killed);
};

struct code_driver_spec {
	const struct code_language *language;
	const char *cwd; /* NULL: ours */
	struct strv env; /* of the interpreter; taken */
};

/* Looks for the program and starts it.  -ENOENT with a sentence when it is missing. */
osb_must_check int code_driver_start(struct app *app, struct code_driver_spec *spec,
				     const struct code_driver_events *events, void *arg,
				     struct code_driver **ret, struct err *e);

/* Another owner. */
void code_driver_give(struct code_driver *d, const struct code_driver_events *events, void *arg);

/* The environment it was started with. */
const struct strv *code_driver_env(const struct code_driver *d);

/* One run at a time, after `ready`.  -E2BIG or -EINVAL with a sentence: this code cannot be sent.
 */
osb_must_check int code_driver_run(struct code_driver *d, const char *id, uint64_t count,
				   struct view code, struct err *e);
void code_driver_resume(struct code_driver *d);

/* Drops what it printed until now. */
void code_driver_skip_output(struct code_driver *d);

/* Has it taken everything that it was sent?  A shell, which takes what it needs, always has. */
bool code_driver_has_read(const struct code_driver *d);

/* Asks it to end its run. */
void code_driver_interrupt(struct code_driver *d, const char *id);

/* Kills the group; `ended` comes.  `why` is static. */
void code_driver_kill(struct code_driver *d, const char *why);

/* No callback comes any more: an interpreter that waits for runs may end by itself (2 s), one that
 * runs is killed.  Accepts NULL. */
void code_driver_stop(struct code_driver *d, bool at_once);

/* Kills and frees those that still end, when the daemon does. */
void code_drivers_done(struct app *app);
