/*
 * Events: whatever bytes a program printed, one event is one line of valid JSON, then an empty
 * line, and valid UTF-8 comes back unchanged.
 */
#include <assert.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"
#include "codec/events.h"
#include "codec/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct json *read_event(struct buf *b)
{
	struct view text = buf_view(b);
	struct json *v = NULL;
	struct err e;

	assert(view_ends(text, VIEW("}\n\n")));
	text.len -= 2;
	assert(!view_has(text, '\n') && !view_has(text, '\r'));
	assert(utf8_valid(text));
	assert(json_parse(text, 0, &v, &e) == 0);
	return v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(16 << 20);
	osb_cleanup(json_freep) struct json *text = NULL, *error = NULL;
	struct view in = view_mem(data, size), out;
	const struct json *member;

	assert(events_text(&b, "stdout", in, size) == 0);
	text = read_event(&b);
	assert(json_str(json_get(text, "text"), &out) == (size > 0));
	if (size > 0 && utf8_valid(in))
		assert(view_eq(in, out));

	buf_clear(&b);
	assert(events_error(&b, "E", in, view_skip(in, size / 2), 1) == 0);
	error = read_event(&b);
	member = json_get(json_get(error, "error"), "traceback");
	assert(json_len(member) == (size > 0));
	return 0;
}
