/*
 * base/utf8.h - strict UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/view.h"

/*
 * Length of the well-formed sequence at the front of `v` (1..4); 0 if `v` is empty or ends
 * inside a sequence that may still become well-formed; -n if its first n bytes (1..3) can
 * never be part of one (the maximal subpart that one U+FFFD replaces).
 */
int utf8_next(struct view v, uint32_t *ret_char);

bool utf8_valid(struct view v);

/* Length of the longest prefix that consists of whole, well-formed sequences. */
size_t utf8_valid_prefix(struct view v);

/* How many bytes at the end of `v` begin a sequence that is still incomplete (0..3). */
size_t utf8_incomplete_tail(struct view v);

/* Writes `c` as 1..4 bytes, returns how many. */
size_t utf8_format(uint32_t c, char ret[4]);
