/*
 * execd/run_request.h - the bodies of sessions, terminals and isolated runs: decoded, nothing else.
 *
 * Pure: what a path means and whether it exists is the handler's business.  A request owns what its
 * views point into; every one must be ended, whether it was decoded or not.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/strv.h"
#include "base/view.h"

struct err;
struct json;

/* POST /session: {"cwd"?}; POST /pty: {"cwd"?, "command"?}.  An empty body is an empty object. */
struct shell_request {
	struct json *body;
	struct view cwd, command; /* empty: not given */
};

osb_must_check int shell_request_decode(struct view body, struct shell_request *ret, struct err *e);
void shell_request_done(struct shell_request *q);

/* POST /session/{id}/run: {"command", "cwd"?, "timeout"?} */
struct session_run_request {
	struct json *body;
	struct view command, cwd;
	int64_t timeout_ms; /* the default where none was given */
};

osb_must_check int session_run_request_decode(struct view body, struct session_run_request *ret,
					      struct err *e);
void session_run_request_done(struct session_run_request *q);

/* POST /v1/isolated/session/{id}/run: {"code", "envs"?, "timeout_seconds"?, "background"?} */
struct isolated_run_request {
	struct json *body;
	struct view code;
	struct strv envs;
	int64_t timeout_s;
	bool background;
};

osb_must_check int isolated_run_request_decode(struct view body, struct isolated_run_request *ret,
					       struct err *e);
void isolated_run_request_done(struct isolated_run_request *q);
