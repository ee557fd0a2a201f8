/*
 * codec/glob.h - file name patterns: * ? [a-z] [!x] [^x] {a,b} \x ** and !(a|b).
 *
 * Characters are UTF-8 code points; a byte that is no part of one counts as one character.
 * Bounded: a pattern that would take too many steps does not match.
 */
#pragma once

#include <stdbool.h>

#include "base/view.h"

#define GLOB_MAX_BYTES	 1024 /* of a pattern */
#define GLOB_MAX_NESTING 16   /* of groups in groups */

/* Is the pattern well-formed (brackets and braces closed, no dangling backslash, nesting and length
 * bounded)? */
bool glob_valid(struct view pattern);

/*
 * Matches a whole name or path. '*', '?' and '!(...)' do not cross '/'; a '**' segment matches any
 * number of segments, also none.  An invalid pattern matches nothing.
 */
bool glob_match(struct view pattern, struct view name);
