/*
 * sdk/fail.h - fills in the error that a caller of the library sees.
 */
#pragma once

#include <opensandbox/error.h>

#include "base/macro.h"
#include "base/view.h"

struct err;

/* All return `code`, which is negative.  `e` may be NULL. */
int fail(osb_error *e, osb_code code, const char *fmt, ...) osb_printf(3, 4);

/* By the -errno of one of our own. */
int fail_err(osb_error *e, const struct err *why);

/* By an answer of the server's that is no success: its envelope, or whatever text it has. */
int fail_answer(osb_error *e, int status, struct view body);

/* Empties it. */
void fail_none(osb_error *e);
