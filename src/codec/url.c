/*
 * codec/url.c - request targets, percent-encoding, queries.
 */
#include "codec/url.h"

#include <errno.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/hex.h"
#include "codec/http_char.h"

/* Value of the escape at text[i], which is a '%'; -1 when it is none. */
static int escape_value(struct view text, size_t i)
{
	int high, low;

	if (text.len - i < 3)
		return -1;
	high = hex_digit(text.p[i + 1]);
	low = hex_digit(text.p[i + 2]);
	return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* Only bytes that may stand in a target, and '%' only as the head of an escape. */
static bool target_chars_ok(struct view text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (!http_char_is(text.p[i], HTTP_TARGET))
			return false;
		if (text.p[i] == '%' && escape_value(text, i) < 0)
			return false;
	}
	return true;
}

/* Cuts "http://authority" off the front; user information is refused as RFC 9110, 4.2.4 advises. */
static bool cut_authority(struct view *text)
{
	struct view rest;
	size_t n = 0;

	if (view_istarts(*text, VIEW("http://")))
		rest = view_skip(*text, 7);
	else if (view_istarts(*text, VIEW("https://")))
		rest = view_skip(*text, 8);
	else
		return false;
	while (n < rest.len && rest.p[n] != '/' && rest.p[n] != '?')
		n++;
	if (n == 0 || !http_char_all(view_first(rest, n), HTTP_AUTHORITY))
		return false;
	*text = view_skip(rest, n);
	return true;
}

bool url_target_parse(struct view text, struct url_target *ret)
{
	size_t question;

	if (!target_chars_ok(text))
		return false;
	if (text.len == 0 || (text.p[0] != '/' && !cut_authority(&text)))
		return false;
	question = view_find(text, '?');
	ret->path = view_first(text, question);
	if (ret->path.len == 0)
		ret->path = VIEW("/");
	ret->query = view_skip(text, question + 1);
	return true;
}

/*
 * Takes one decoded byte from text at *i.  -EINVAL on a bad escape or a NUL, which no path,
 * name or value can hold.
 */
static int decode_char(struct view text, enum url_decode_mode mode, size_t *i)
{
	int c = (unsigned char)text.p[*i];

	if (c == '%') {
		c = escape_value(text, *i);
		*i += 2;
	} else if (c == '+' && mode == URL_FORM) {
		c = ' ';
	}
	*i += 1;
	return c > 0 ? c : -EINVAL;
}

int url_decode(struct arena *a, struct view text, enum url_decode_mode mode, struct view *ret)
{
	char *out = arena_alloc(a, text.len + 1);
	size_t n = 0;

	if (!out)
		return -E2BIG;
	for (size_t i = 0; i < text.len;) {
		int c = decode_char(text, mode, &i);

		if (c < 0)
			return c;
		out[n++] = (char)c;
	}
	*ret = view_mem(out, n);
	return 0;
}

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

int url_encode(struct buf *out, struct view text, bool keep_slash)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t before = out->len;
	int r = 0;

	for (size_t i = 0; i < text.len && r == 0; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (is_unreserved((char)c) || (c == '/' && keep_slash))
			r = buf_append_char(out, (char)c);
		else
			r = buf_append(out, (char[]){'%', digits[c >> 4], digits[c & 15]}, 3);
	}
	if (r < 0)
		buf_truncate(out, before);
	return r;
}

/* Cuts the next non-empty pair off *rest, still encoded. */
static bool next_pair(struct view *rest, struct view *ret_name, struct view *ret_value)
{
	struct view pair;

	do {
		if (!view_split(rest, '&', &pair))
			return false;
	} while (pair.len == 0);
	*ret_name = view_first(pair, view_find(pair, '='));
	*ret_value = view_skip(pair, ret_name->len + 1);
	return true;
}

int url_query_next(struct arena *a, struct view *rest, struct view *ret_name,
		   struct view *ret_value)
{
	struct view name, value;
	int r;

	if (!next_pair(rest, &name, &value))
		return 0;
	r = url_decode(a, name, URL_FORM, &name);
	if (r < 0)
		return r;
	r = url_decode(a, value, URL_FORM, &value);
	if (r < 0)
		return r;
	*ret_name = name;
	*ret_value = value;
	return 1;
}

/* Does `text` decode to `name`?  1, 0 or -EINVAL; needs no memory. */
static int decodes_to(struct view text, const char *name)
{
	bool equal = true;
	size_t n = 0, len = strlen(name);

	for (size_t i = 0; i < text.len; n++) {
		int c = decode_char(text, URL_FORM, &i);

		if (c < 0)
			return c;
		equal = equal && n < len && name[n] == (char)c;
	}
	return equal && n == len;
}

int url_query_get(struct arena *a, struct view query, const char *name, struct view *ret)
{
	struct view raw_name, raw_value;

	while (next_pair(&query, &raw_name, &raw_value)) {
		int r = decodes_to(raw_name, name);

		if (r < 0)
			return r;
		if (r == 0)
			continue;
		r = url_decode(a, raw_value, URL_FORM, ret);
		return r < 0 ? r : 1;
	}
	return 0;
}
