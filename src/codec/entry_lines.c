/*
 * codec/entry_lines.c - output cut into lines, and lines written with their front.
 */
#include "codec/entry_lines.h"

#include <assert.h>
#include <errno.h>

#define KEEP_BYTES 1024 /* between two outputs */

void entry_lines_init(struct entry_lines *l)
{
	*l = (struct entry_lines){.rest = BUF_INIT(ENTRY_LINE_MAX + ENTRY_LINE_CHUNK)};
}

void entry_lines_done(struct entry_lines *l)
{
	buf_done(&l->rest);
}

void entry_lines_add(struct entry_lines *l, struct view bytes)
{
	int r = buf_append_view(&l->rest, bytes);

	assert(r == 0);
	(void)r;
}

/* The line stays where it is in the buffer: bytes taken off the front are not moved before the
 * next append. */
bool entry_lines_next(struct entry_lines *l, bool at_end, struct view *ret)
{
	struct view in = buf_view(&l->rest);
	size_t before = in.len;
	bool found;

	found = lines_next(&l->lines, &in, ENTRY_LINE_MAX, ret) != LINES_MORE ||
		(at_end && lines_rest(&l->lines, &in, at_end, ret));
	if (in.len < before)
		buf_consume(&l->rest, before - in.len);
	if (!found)
		buf_shrink(&l->rest, KEEP_BYTES);
	return found;
}

static int append_source(struct buf *out, struct view source)
{
	char text[ENTRY_SOURCE_MAX];

	source = view_first(source, sizeof(text));
	for (size_t i = 0; i < source.len; i++) {
		unsigned char c = (unsigned char)source.p[i];

		text[i] = source.p[i];
		if (c <= ' ' || c == 0x7f)
			text[i] = '_';
	}
	return buf_append(out, text, source.len);
}

int entry_lines_format(struct buf *out, const char *stamp, struct view source, struct view text)
{
	size_t before = out->len;

	if (buf_append_str(out, stamp) < 0 || buf_append_char(out, ' ') < 0 ||
	    append_source(out, source) < 0 || buf_append_char(out, ' ') < 0 ||
	    buf_append_view(out, text) < 0 || buf_append_char(out, '\n') < 0) {
		buf_truncate(out, before);
		return -E2BIG;
	}
	return 0;
}
