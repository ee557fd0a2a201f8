/*
 * codec/counted_names.h - lists like "python:2, bash": names, each with a number.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct err;

#define COUNTED_NAME_MAX 64

/*
 * Cuts the first entry off *rest.  1, or 0 at the end, or -EINVAL with a sentence.  A name has
 * lower-case letters, digits and "+-_."; without a number it counts once.
 */
osb_must_check int counted_names_next(struct view *rest, struct view *ret_name, uint64_t *ret_n,
				      struct err *e);

/* Is all of it well-formed, and all numbers together at most `max`? */
osb_must_check int counted_names_check(struct view text, uint64_t max, struct err *e);
