/*
 * execd/command_request.h - the body of POST /command.
 */
#pragma once

#include "base/buf.h"
#include "base/macro.h"
#include "base/strv.h"
#include "base/view.h"
#include "execd/command.h"
#include "execd/users.h"

struct app;
struct arena;
struct err;
struct json;

#define COMMAND_REQUEST_MAX ((size_t)8 * 1024 * 1024)

struct command_request {
	struct command_spec spec;
	/* what the spec borrows from */
	struct json *body;
	struct strv argv;
	struct strv own_env;
	const struct strv *env;
	struct buf content;
	gid_t groups[USERS_MAX_GROUPS];
};

/* *ret must be ended in any case.  -EINVAL or -E2BIG with a sentence for the client. */
osb_must_check int command_request_decode(struct app *app, struct arena *a, struct view text,
					  struct command_request *ret, struct err *e);

/* The same for a command line that came in another way; `cwd` may be empty. */
osb_must_check int command_request_line(struct app *app, struct arena *a, struct view command,
					struct view cwd, bool background,
					struct command_request *ret, struct err *e);
void command_request_done(struct command_request *q);
