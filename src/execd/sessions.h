/*
 * execd/sessions.h - the daemon's shell sessions by id.
 *
 * A session is a directory and a persistent shell (execd/shell.h): bash, else sh.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"
#include "base/view.h"

struct app;
struct err;
struct sessions;
struct shell;

#define SESSIONS_MAX 256

struct sessions *sessions_new(struct app *app);
void sessions_free(struct sessions *s); /* accepts NULL; ends every session */

/* A session that begins in `cwd`; *ret_id lives as long as it.  -EBUSY when there are too many. */
osb_must_check int sessions_create(struct sessions *s, const char *cwd, const char **ret_id,
				   struct err *e);

/* NULL when there is none; *ret_id (may be NULL) as above. */
struct shell *sessions_find(struct sessions *s, struct view id, const char **ret_id);

/* Ends a session and what runs in it; false when there is none. */
bool sessions_close(struct sessions *s, struct view id);
