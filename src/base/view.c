/*
 * base/view.c - comparing, searching and cutting borrowed runs of bytes.
 */
#include "base/view.h"

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

bool view_eq(struct view a, struct view b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

/* Most names differ in their first byte: the length of `s` is not asked for before that. */
bool view_is(struct view a, const char *s)
{
	if (!s)
		return a.len == 0;
	for (size_t i = 0; i < a.len; i++)
		if (a.p[i] != s[i] || s[i] == '\0')
			return false;
	return s[a.len] == '\0';
}

bool view_ieq(struct view a, struct view b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++)
		if (lower(a.p[i]) != lower(b.p[i]))
			return false;
	return true;
}

bool view_iis(struct view a, const char *s)
{
	if (!s)
		return a.len == 0;
	for (size_t i = 0; i < a.len; i++)
		if (lower(a.p[i]) != lower(s[i]) || s[i] == '\0')
			return false;
	return s[a.len] == '\0';
}

bool view_starts(struct view v, struct view prefix)
{
	return view_eq(view_first(v, prefix.len), prefix);
}

bool view_istarts(struct view v, struct view prefix)
{
	return view_ieq(view_first(v, prefix.len), prefix);
}

bool view_ends(struct view v, struct view suffix)
{
	return v.len >= suffix.len && view_eq(view_skip(v, v.len - suffix.len), suffix);
}

bool view_has(struct view v, char c)
{
	return view_find(v, c) < v.len;
}

size_t view_find(struct view v, char c)
{
	const char *at = v.len > 0 ? memchr(v.p, c, v.len) : NULL;

	return at ? (size_t)(at - v.p) : v.len;
}

size_t view_find_view(struct view v, struct view needle)
{
	const char *at;

	if (needle.len == 0)
		return 0;
	at = v.len >= needle.len ? memmem(v.p, v.len, needle.p, needle.len) : NULL;
	return at ? (size_t)(at - v.p) : v.len;
}

struct view view_first(struct view v, size_t n)
{
	return (struct view){v.p, MIN(n, v.len)};
}

struct view view_skip(struct view v, size_t n)
{
	n = MIN(n, v.len);
	if (n == 0)
		return v;
	return (struct view){v.p + n, v.len - n};
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct view view_trim(struct view v)
{
	while (v.len > 0 && is_blank(v.p[0]))
		v = view_skip(v, 1);
	while (v.len > 0 && is_blank(v.p[v.len - 1]))
		v.len--;
	return v;
}

bool view_split(struct view *rest, char sep, struct view *ret)
{
	size_t at;

	if (rest->len == 0)
		return false;
	at = view_find(*rest, sep);
	*ret = view_first(*rest, at);
	*rest = view_skip(*rest, at + 1);
	return true;
}
