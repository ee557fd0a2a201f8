/*
 * codec/http_char.c - the table behind http_char.h.
 *
 * HTTP_TARGET is a little wider than RFC 3986: brackets, braces, '|', '\', '^' and '`' pass,
 * because browsers' URL rules send them bare; they have no meaning to any parser here.
 */
#include "codec/http_char.h"

#define T HTTP_TCHAR
#define F HTTP_FIELD
#define U HTTP_TARGET
#define H HTTP_AUTHORITY
#define B HTTP_BOUNDARY

/* clang-format off */
const uint8_t http_char_table[256] = {
	['\t'] = F,
	[' '] = F | B,
	['!'] = T | F | U | H,
	['"'] = F,
	['#'] = T | F,
	['$'] = T | F | U | H,
	['%'] = T | F | U | H,
	['&'] = T | F | U | H,
	['\''] = T | F | U | H | B,
	['('] = F | U | H | B,
	[')'] = F | U | H | B,
	['*'] = T | F | U | H,
	['+'] = T | F | U | H | B,
	[','] = F | U | H | B,
	['-'] = T | F | U | H | B,
	['.'] = T | F | U | H | B,
	['/'] = F | U | B,
	['0' ... '9'] = T | F | U | H | B,
	[':'] = F | U | H | B,
	[';'] = F | U | H,
	['<'] = F,
	['='] = F | U | H | B,
	['>'] = F,
	['?'] = F | U | B,
	['@'] = F | U,
	['A' ... 'Z'] = T | F | U | H | B,
	['['] = F | U | H,
	['\\'] = F | U,
	[']'] = F | U | H,
	['^'] = T | F | U,
	['_'] = T | F | U | H | B,
	['`'] = T | F | U,
	['a' ... 'z'] = T | F | U | H | B,
	['{'] = F | U,
	['|'] = T | F | U,
	['}'] = F | U,
	['~'] = T | F | U | H,
	[0x80 ... 0xff] = F,
};
/* clang-format on */

bool http_char_all(struct view text, enum http_char_class class)
{
	for (size_t i = 0; i < text.len; i++)
		if (!http_char_is(text.p[i], class))
			return false;
	return true;
}
