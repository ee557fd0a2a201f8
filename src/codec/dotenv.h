/*
 * codec/dotenv.h - "KEY=VALUE" lines: comments, "export ", quotes.
 */
#pragma once

#include "base/macro.h"
#include "base/view.h"

/*
 * Takes the next assignment off *rest.  1 = an assignment (value raw, quotes removed; *ret_literal
 * is set when it was single-quoted and must not be expanded), 0 = the end.  Lines that are
 * no assignment are skipped.
 */
osb_must_check int dotenv_next(struct view *rest, struct view *ret_name, struct view *ret_value,
			       int *ret_literal);
