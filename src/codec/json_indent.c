/*
 * codec/json_indent.c - line ends and spaces where values begin; strings pass as they are.
 */
#include "codec/json_indent.h"

#include <stdbool.h>

#include "base/buf.h"

static int new_line(struct buf *out, unsigned depth)
{
	int r = buf_append_char(out, '\n');

	while (r == 0 && depth--)
		r = buf_append_str(out, "  ");
	return r;
}

/* The length of the string at the front, quotes included. */
static size_t string_len(struct view text)
{
	size_t n = 1;

	while (n < text.len && text.p[n] != '"')
		n += text.p[n] == '\\' ? 2 : 1;
	return n < text.len ? n + 1 : text.len;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t skip_spaces(struct view text, size_t at)
{
	while (at < text.len && is_space(text.p[at]))
		at++;
	return at;
}

static int indent_one(struct view text, size_t *at, unsigned *depth, struct buf *out)
{
	char c = text.p[*at];
	size_t next = skip_spaces(text, *at + 1), len = 1;
	bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
	bool empty = opens && next < text.len && (text.p[next] == '}' || text.p[next] == ']');
	int r = 0;

	if (c == '"')
		len = string_len(view_skip(text, *at));
	if (closes && *depth)
		r = new_line(out, --*depth);
	if (r == 0)
		r = buf_append(out, text.p + *at, len);
	if (r == 0 && empty)
		r = buf_append_char(out, text.p[next]);
	else if (r == 0 && opens)
		r = new_line(out, ++*depth);
	else if (r == 0 && c == ',')
		r = new_line(out, *depth);
	else if (r == 0 && c == ':')
		r = buf_append_char(out, ' ');
	*at = skip_spaces(text, empty ? next + 1 : *at + len);
	return r;
}

int json_indent(struct view text, struct buf *out)
{
	size_t at = skip_spaces(text, 0);
	unsigned depth = 0;
	int r = 0;

	while (r == 0 && at < text.len)
		r = indent_one(text, &at, &depth, out);
	return r == 0 ? buf_append_char(out, '\n') : r;
}
