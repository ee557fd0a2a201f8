/*
 * codec/http_char.h - which bytes may stand where in HTTP: one table for all HTTP codecs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/view.h"

enum http_char_class {
	HTTP_TCHAR = 1,	    /* tokens (RFC 9110, 5.6.2) */
	HTTP_FIELD = 2,	    /* field values: visible, space, tab, obs-text */
	HTTP_TARGET = 4,    /* request targets; '%' must begin an escape */
	HTTP_AUTHORITY = 8, /* host and port */
	HTTP_BOUNDARY = 16, /* multipart boundaries (RFC 2046, 5.1.1) */
};

extern const uint8_t http_char_table[256];

static inline bool http_char_is(char c, enum http_char_class class)
{
	return (http_char_table[(unsigned char)c] & class) != 0;
}

/* Are all bytes of the class?  True for an empty text. */
bool http_char_all(struct view text, enum http_char_class class);
