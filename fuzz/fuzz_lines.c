/*
 * Lines: the first bytes choose how the rest is cut into reads.  No byte but terminators is lost,
 * no piece exceeds the limit, no character is cut that was whole, and nothing stays behind.
 */
#include <assert.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "codec/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_end(char c)
{
	return c == '\n' || c == '\r';
}

static struct view without_ends(struct buf *b, struct view text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!is_end(text.p[i]))
			assert(buf_append_char(b, text.p[i]) == 0);
	return buf_view(b);
}

static void take_line(struct buf *out, struct view line)
{
	for (size_t i = 0; i < line.len; i++)
		assert(!is_end(line.p[i]));
	assert(buf_append_view(out, line) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	osb_cleanup(buf_done) struct buf in = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);
	osb_cleanup(buf_done) struct buf expected = BUF_INIT(1 << 20);
	struct lines l = {0};
	struct view text, rest, line;
	size_t step, max;
	bool valid;

	if (size < 2 || size > 1 << 16)
		return 0;
	step = 1 + data[0] % 64;
	max = 4 + data[1];
	text = view_mem(data + 2, size - 2);
	valid = utf8_valid(text);
	for (size_t at = 0; at < text.len; at += step) {
		enum lines_result r;

		assert(buf_append_view(&in, view_first(view_skip(text, at), step)) == 0);
		rest = buf_view(&in);
		while ((r = lines_next(&l, &rest, max, &line)) != LINES_MORE) {
			assert(line.len <= max && (r == LINES_LINE || line.len > 0));
			assert(!valid || utf8_valid(line));
			take_line(&out, line);
		}
		assert(rest.len < max && l.scanned == rest.len);
		if (data[0] & 0x80 && lines_rest(&l, &rest, /* at_end= */ false, &line)) {
			assert(!valid || utf8_valid(line));
			take_line(&out, line);
		}
		buf_consume(&in, in.len - rest.len);
	}
	rest = buf_view(&in);
	if (lines_rest(&l, &rest, /* at_end= */ true, &line))
		take_line(&out, line);
	assert(rest.len == 0);
	assert(view_eq(buf_view(&out), without_ends(&expected, text)));
	return 0;
}
