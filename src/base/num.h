/*
 * base/num.h - decimal numbers from text and to it: the whole text or nothing, no sign games, no
 * overflow.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/view.h"

bool num_parse_u64(struct view text, uint64_t *ret); /* digits only */
bool num_parse_i64(struct view text, int64_t *ret);  /* an optional '-' in front */
bool num_parse_u32(struct view text, uint32_t *ret);
bool num_parse_octal(struct view text, uint32_t *ret); /* digits 0-7 only, at most 6 of them */

#define NUM_DECIMAL_MAX 20

/* The digits, at the end of `room`; no NUL. */
struct view num_format_u64(uint64_t n, char room[NUM_DECIMAL_MAX]);
