/*
 * codec/rfc3339.h - points in time as text.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/view.h"

#define RFC3339_MAX 48 /* bytes incl. the NUL */

/* UTC with 'Z'; a fraction of up to 9 digits, trailing zeros dropped, none when zero. */
void rfc3339_format(int64_t unix_ns, char ret[RFC3339_MAX]);

/* Date, 'T' or a space, time, optional fraction, optional zone (none = UTC). */
bool rfc3339_parse(struct view text, int64_t *ret_unix_ns);

/* "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110) for Last-Modified and friends. */
void rfc3339_format_http(int64_t unix_s, char ret[RFC3339_MAX]);
bool rfc3339_parse_http(struct view text, int64_t *ret_unix_s);
