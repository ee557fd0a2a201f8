/*
 * codec/dotenv.c - "KEY=VALUE" lines.  Everything returned is a part of the text.
 */
#include "codec/dotenv.h"

#include <stdbool.h>

static struct view trim_line(struct view line)
{
	if (line.len > 0 && line.p[line.len - 1] == '\r')
		line.len--;
	return view_trim(line);
}

/* A name that an environment can hold and a shell could have written. */
static bool name_ok(struct view name)
{
	for (size_t i = 0; i < name.len; i++)
		if ((unsigned char)name.p[i] <= ' ' || strchr("'\"`$\\#", name.p[i]))
			return false;
	return name.len > 0;
}

/* Takes quotes off when they enclose the whole value, a comment behind it aside. */
static struct view unquote(struct view value, int *ret_literal)
{
	struct view inside, behind;
	size_t end;

	*ret_literal = 0;
	if (value.len < 2 || (value.p[0] != '\'' && value.p[0] != '"'))
		return value;
	inside = view_skip(value, 1);
	end = view_find(inside, value.p[0]);
	if (end == inside.len)
		return value;
	behind = view_skip(inside, end + 1);
	if (view_trim(behind).len > 0 && !(view_trim(behind).p[0] == '#' && behind.p[0] != '#'))
		return value;
	*ret_literal = value.p[0] == '\'';
	return view_first(inside, end);
}

int dotenv_next(struct view *rest, struct view *ret_name, struct view *ret_value, int *ret_literal)
{
	struct view line;

	while (view_split(rest, '\n', &line)) {
		size_t eq;
		struct view name;

		line = trim_line(line);
		if (line.len == 0 || line.p[0] == '#' || view_has(line, '\0'))
			continue;
		if (view_starts(line, VIEW("export ")) || view_starts(line, VIEW("export\t")))
			line = view_trim(view_skip(line, 7));
		eq = view_find(line, '=');
		name = view_trim(view_first(line, eq));
		if (eq == line.len || !name_ok(name))
			continue;
		*ret_name = name;
		*ret_value = unquote(view_trim(view_skip(line, eq + 1)), ret_literal);
		return 1;
	}
	return 0;
}
