/*
 * execd/code_pool.h - interpreters started ahead, so that a context needs none of their start.
 *
 * Nothing is started unless somebody asked for it.  One that is taken is replaced.
 */
#pragma once

#include "base/macro.h"
#include "base/view.h"

struct app;
struct code_driver;
struct code_language;
struct code_pool;
struct err;

#define CODE_POOL_MAX 32 /* all told */

struct code_pool *code_pool_new(struct app *app);
void code_pool_free(struct code_pool *p); /* accepts NULL */

/* Is this a list like "python:2,bash:1"?  An empty one is a pool of nothing. */
osb_must_check int code_pool_check(struct view text, struct err *e);

/* Starts what `text` asks for; languages that are unknown here are left out. */
void code_pool_fill(struct code_pool *p, struct view text);

/* One that is ready, with the environment that a context would get now; or NULL. */
struct code_driver *code_pool_take(struct code_pool *p, const struct code_language *language);
