/*
 * execd/ptys.h - the daemon's terminals by id, and the clients attached to them.
 */
#pragma once

#include <stdbool.h>

#include "base/list.h"
#include "base/macro.h"
#include "base/view.h"

struct app;
struct err;
struct pty;
struct pty_clients;
struct ptys;

#define PTYS_MAX	256  /* terminals */
#define PTYS_CLIENT_MAX 1024 /* holders and viewers of all of them */

struct pty_clients *ptys_clients(struct ptys *all);

struct ptys *ptys_new(struct app *app);
void ptys_free(struct ptys *all); /* accepts NULL; kills what runs, cuts the clients */

/* Nothing runs yet.  `cwd` may be NULL.  -EBUSY when there are too many. */
osb_must_check int ptys_create(struct ptys *all, const char *cwd, const char *command,
			       struct pty **ret, struct err *e);

struct pty *ptys_find(struct ptys *all, struct view id); /* or NULL */

/* Forgets the terminal at once and kills what runs in it; its clients hear how it ended. */
void ptys_delete(struct ptys *all, struct pty *p);
