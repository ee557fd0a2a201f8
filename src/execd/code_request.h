/*
 * execd/code_request.h - the bodies of /code: decoded, nothing else.
 *
 * Pure.  A request owns what its views point into and must be ended in any case.
 */
#pragma once

#include "base/macro.h"
#include "base/view.h"

struct err;
struct json;

#define CODE_REQUEST_MAX ((size_t)16 << 20)

struct code_request {
	struct json *body;
	struct view code;	       /* POST /code only */
	struct view id, language, cwd; /* of the context; empty: not given */
};

/* POST /code: {"code", "context"?: {"id"?, "language"?, "cwd"?}} */
osb_must_check int code_run_request_decode(struct view body, struct code_request *ret,
					   struct err *e);

/* POST /code/context: {"language", "cwd"?} */
osb_must_check int code_context_request_decode(struct view body, struct code_request *ret,
					       struct err *e);
void code_request_done(struct code_request *q);
