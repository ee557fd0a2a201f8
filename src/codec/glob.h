/*
 * codec/glob.h - file name patterns: * ? [a-z] [!x] [^x] {a,b} \x ** and !(...).
 *
 * Bounded: a pattern that would take too many steps does not match.
 */
#pragma once

#include <stdbool.h>

#include "base/view.h"

/* Is the pattern well-formed (brackets and braces closed, no dangling backslash, nesting and length
 * bounded)? */
bool glob_valid(struct view pattern);

/* Matches a whole name or path. '*' and '?' do not cross '/'; a '**' segment does. */
bool glob_match(struct view pattern, struct view name);
