/*
 * execd/file_names.c - the escape for bytes that are no UTF-8 (see the header for the rule).
 */
#include "execd/file_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/utf8.h"

#define ESCAPE_BASE  0x10F700u
#define ESCAPE_FIRST (ESCAPE_BASE + 0x80)
#define ESCAPE_LAST  (ESCAPE_BASE + 0xff)

/* Every escape character is F4 8F 9E|9F xx. */
#define ESCAPE_LEAD "\xf4\x8f"

static bool is_escape(uint32_t c)
{
	return c >= ESCAPE_FIRST && c <= ESCAPE_LAST;
}

static int append_escaped(struct buf *out, struct view bytes)
{
	for (size_t i = 0; i < bytes.len; i++) {
		char text[4];
		size_t n = utf8_format(ESCAPE_BASE + (unsigned char)bytes.p[i], text);
		int r = buf_append(out, text, n);

		if (r < 0)
			return r;
	}
	return 0;
}

int file_name_escape(struct buf *out, struct view name)
{
	while (name.len > 0) {
		size_t plain = 0;
		uint32_t c = 0;
		int n = 0, r;

		/* A run that stays as it is, then (maybe) a sequence that does not. */
		while (plain < name.len) {
			n = utf8_next(view_skip(name, plain), &c);
			if (n <= 0 || is_escape(c))
				break;
			plain += (size_t)n;
		}
		r = buf_append(out, name.p, plain);
		if (r < 0)
			return r;
		name = view_skip(name, plain);
		if (name.len == 0)
			break;

		/* 0: the name ends inside a sequence, all of the rest is loose bytes. */
		size_t loose = n == 0 ? name.len : (size_t)(n < 0 ? -n : n);

		r = append_escaped(out, view_first(name, loose));
		if (r < 0)
			return r;
		name = view_skip(name, loose);
	}
	return 0;
}

int file_name_unescape(struct arena *a, struct view text, struct view *ret)
{
	char *name;
	size_t len = 0;

	if (view_find_view(text, VIEW(ESCAPE_LEAD)) == text.len) {
		*ret = text;
		return 0;
	}

	name = arena_alloc(a, text.len + 1); /* a name is never longer than its text */
	if (!name)
		return -E2BIG;

	while (text.len > 0) {
		uint32_t c = 0;
		int n = utf8_next(text, &c);

		if (n > 0 && is_escape(c)) {
			name[len++] = (char)(unsigned char)(c - ESCAPE_BASE);
		} else {
			n = n > 0 ? n : 1;
			memcpy(name + len, text.p, (size_t)n);
			len += (size_t)n;
		}
		text = view_skip(text, (size_t)n);
	}
	*ret = (struct view){name, len};
	return 0;
}

const char *file_name_short(const char *path, char ret[FILE_NAME_SHORT])
{
	size_t len = strlen(path);

	if (len < FILE_NAME_SHORT)
		memcpy(ret, path, len + 1);
	else
		snprintf(ret, FILE_NAME_SHORT, "...%s", path + len - (FILE_NAME_SHORT - 4));
	return ret;
}
