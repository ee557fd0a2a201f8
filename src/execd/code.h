/*
 * execd/code.h - all contexts, the default one of each language, and interpreters started ahead.
 */
#pragma once

#include "base/macro.h"
#include "base/view.h"

struct app;
struct code_context;
struct code_language;
struct codes;
struct err;

#define CODES_MAX 128 /* contexts */

struct codes *codes_new(struct app *app);
void codes_free(struct codes *cs); /* accepts NULL */

/* -EBUSY when there are too many. */
osb_must_check int codes_create(struct codes *cs, const struct code_language *language,
				const char *cwd, struct code_context **ret, struct err *e);

/* That of the language, created with `cwd` if there is none yet. */
osb_must_check int codes_default(struct codes *cs, const struct code_language *language,
				 const char *cwd, struct code_context **ret, struct err *e);

struct code_context *codes_find(struct codes *cs, struct view id); /* NULL: unknown */
void codes_delete(struct codes *cs, struct code_context *c);
void codes_delete_language(struct codes *cs, const struct code_language *language);

/* Walks those that clients see, oldest first: NULL begins, NULL ends. */
struct code_context *codes_next(struct codes *cs, const struct code_context *c);

/* Starts interpreters ahead, by a list like "python:2,bash". */
void codes_pool_fill(struct codes *cs, struct view text);
