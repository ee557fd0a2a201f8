/*
 * execd/isolated.h - isolated sessions by id: their life, their background runs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/rand.h"
#include "base/strv.h"
#include "base/view.h"
#include "execd/isolated_log.h"
#include "execd/isolated_spec.h"

struct app;
struct err;
struct isolated;
struct isolated_box;
struct isolated_run;
struct isolated_shell;
struct loop_task;
struct loop_timer;
struct shell;
struct shell_job;

#define ISOLATED_MAX_SESSIONS 64
#define ISOLATED_MAX_RUNS     16 /* background runs at a time in one session */
#define ISOLATED_KEPT_RUNS    64 /* with those that have ended */

struct isolated_config;

struct isolated_session {
	struct isolated *owner;
	char id[RAND_UUID_LEN + 1];
	struct isolated_spec spec;
	struct isolated_box *box;
	struct isolated_shell *shell;
	char *upper_dir; /* NULL: none on disk */
	uint64_t created_ns, last_run_ns;
	size_t active; /* runs */
	bool committing;
	struct loop_timer *idle;
	uint64_t idle_end_us;	   /* 0 = not counting */
	struct isolated_run *runs; /* newest first */
};

struct isolated_run {
	struct isolated_run *next;
	struct isolated_session *session;
	char id[RAND_UUID_LEN + 1];
	struct isolated_shell *shell; /* NULL once it has ended */
	struct loop_task *end;
	struct isolated_log log;
	uint64_t started_ns, finished_ns; /* 0 = still running */
	int exit_code;
	const char *error; /* or NULL */
};

struct isolated_probe {
	bool available, setpriv, userns;
	char message[320]; /* why not */
};

/* Fails when the operator's settings are wrong. */
osb_must_check int isolated_new(struct app *app, struct isolated **ret, struct err *e);
void isolated_free(struct isolated *i); /* accepts NULL; ends every session */

/* What the kernel lets us do: tried once, then remembered. */
const struct isolated_probe *isolated_probe(struct isolated *i);

/*
 * -EINVAL for a bad body, -EOPNOTSUPP for what cannot be had here, -EBUSY when there are too many
 * sessions; anything else is a failure of ours.
 */
osb_must_check int isolated_create(struct isolated *i, struct view body,
				   struct isolated_session **ret, struct err *e);
struct isolated_session *isolated_find(struct isolated *i, struct view id);
void isolated_delete(struct isolated *i, struct isolated_session *s);

/* Walks all sessions: `size_t pos = 0; while ((s = isolated_next(i, &pos)))`. */
struct isolated_session *isolated_next(struct isolated *i, size_t *pos);

bool isolated_alive(const struct isolated_session *s);
struct shell *isolated_shell(const struct isolated_session *s);
int64_t isolated_idle_left_s(const struct isolated_session *s); /* -1 = not counting */

/* Around every run and commit: the session is in use. */
void isolated_begin(struct isolated_session *s);
void isolated_end(struct isolated_session *s);

/* Starts a run of its own shell, which begins with what the session's shell knows. */
osb_must_check int isolated_run_start(struct isolated_session *s, const struct shell_job *job,
				      struct isolated_run **ret, struct err *e);
struct isolated_run *isolated_run_find(struct isolated_session *s, struct view id);
