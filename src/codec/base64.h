/*
 * codec/base64.h - base64 with padding (RFC 4648, section 4).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"
#include "base/view.h"

/* Characters for n bytes, without the NUL. */
#define BASE64_LEN(n) (((n) + 2) / 3 * 4)

/* Writes BASE64_LEN(n) characters and a NUL. */
void base64_format(const void *p, size_t n, char *ret);

/*
 * Strict: full groups, padding only at the end, unused bits zero, nothing else.  Returns the
 * number of bytes written to `ret`, -EINVAL, or -E2BIG when there are more than `max`.
 */
osb_must_check ssize_t base64_parse(struct view text, void *ret, size_t max);
