/*
 * execd/code_context.h - one context: an interpreter that keeps the state between runs.
 *
 * The interpreter may end at any time, by its own code or the kernel's hand.  The run that was on
 * says so, and the next run gets a fresh interpreter and is told that the state was lost.
 */
#pragma once

#include <stdbool.h>

#include "base/list.h"
#include "base/macro.h"
#include "base/view.h"

struct app;
struct code_context;
struct code_driver;
struct code_language;
struct err;
struct http_exchange;

/* Called once, when it can take runs, or cannot (`failure`; then it may be freed in the call).
 */
typedef void code_context_ready_fn(void *arg, const char *failure);

/* Starts the interpreter (`cwd` NULL: in execd's directory), or takes `pooled`.  -ENOENT with a
 * sentence when it is missing. */
osb_must_check int code_context_new(struct app *app, const struct code_language *language,
				    const char *cwd, struct code_driver *pooled,
				    struct code_context **ret, struct err *e);

/* Ends the interpreter and its run, which says so.  Accepts NULL. */
void code_context_free(struct code_context *c);

const char *code_context_id(const struct code_context *c);
const struct code_language *code_context_language(const struct code_context *c);
const char *code_context_cwd(const struct code_context *c); /* or NULL */

/* Calls fn(arg) when it is ready, maybe at once; NULL: nobody waits any more. */
void code_context_await(struct code_context *c, code_context_ready_fn *fn, void *arg);

/* Answers `x` with the events of a run; of a busy one with an error. */
void code_context_run(struct code_context *c, struct http_exchange *x, struct view code);

/* Ends the run that is on, if one is: first by asking, then by force. */
void code_context_interrupt(struct code_context *c);
