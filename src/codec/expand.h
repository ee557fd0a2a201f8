/*
 * codec/expand.h - "~", "$NAME" and "${NAME}" in paths.
 */
#pragma once

#include "base/macro.h"
#include "base/view.h"

struct err;
struct arena;

/* The value of a variable, or NULL. */
typedef const char *expand_lookup_fn(void *arg, struct view name);

/*
 * Expands a leading "~" or "~/" to `home` and variables by `lookup`.  An undefined variable is
 * -EINVAL with a sentence.  "$" not followed by a name or "{" stays itself.
 */
osb_must_check int expand_path(struct arena *a, struct view text, const char *home,
			       expand_lookup_fn *lookup, void *arg, struct view *ret,
			       struct err *e);

/* Expands variables alone; undefined ones become empty. */
osb_must_check int expand_vars(struct arena *a, struct view text, expand_lookup_fn *lookup,
			       void *arg, struct view *ret);
