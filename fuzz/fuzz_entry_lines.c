/*
 * The lines of a sandbox's log: no line holds a line end, and no other byte is lost.
 */
#include <assert.h>
#include <stdint.h>

#include "codec/entry_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t text_bytes(struct view v)
{
	size_t n = 0;

	for (size_t i = 0; i < v.len; i++)
		n += v.p[i] != '\n' && v.p[i] != '\r';
	return n;
}

static size_t take(struct entry_lines *l, bool at_end)
{
	struct view line;
	size_t n = 0;

	while (entry_lines_next(l, at_end, &line)) {
		struct buf out = BUF_INIT(ENTRY_LINE_MAX + ENTRY_FRONT_BYTES);

		assert(line.len <= ENTRY_LINE_MAX && text_bytes(line) == line.len);
		assert(entry_lines_format(&out, "2026-11-15T09:28:09.123456789Z", line, line) == 0);
		assert(text_bytes(buf_view(&out)) + 1 == out.len);
		buf_done(&out);
		n += line.len;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view in = view_mem(data, size);
	size_t step = size > 0 ? 1 + data[0] * (size_t)37 : 1, n = 0;
	struct entry_lines l;

	entry_lines_init(&l);
	for (struct view rest = in; rest.len > 0; rest = view_skip(rest, step)) {
		entry_lines_add(&l, view_first(rest, step));
		n += take(&l, /* at_end= */ false);
	}
	n += take(&l, /* at_end= */ true);
	assert(n == text_bytes(in));
	entry_lines_done(&l);
	return 0;
}
