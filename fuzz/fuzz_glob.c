/*
 * Patterns: the first line is a pattern, the rest a name.  An invalid pattern matches nothing, a
 * quoted name matches itself, and every call ends.
 */
#include <assert.h>
#include <stdint.h>

#include "base/buf.h"
#include "codec/glob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A name matches the pattern that escapes each of its bytes. */
static void check_quoted(struct view name)
{
	osb_cleanup(buf_done) struct buf quoted = BUF_INIT(GLOB_MAX_BYTES);

	if (name.len > GLOB_MAX_BYTES / 2)
		return;
	for (size_t i = 0; i < name.len; i++)
		assert(buf_append_char(&quoted, '\\') == 0 &&
		       buf_append_char(&quoted, name.p[i]) == 0);
	assert(glob_valid(buf_view(&quoted)));
	assert(glob_match(buf_view(&quoted), name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view in = view_mem(data, size);
	struct view pattern = view_first(in, view_find(in, '\n'));
	struct view name = view_skip(in, pattern.len + 1);
	bool matches;

	if (name.len > 4096)
		return 0;
	matches = glob_match(pattern, name);
	assert(!matches || glob_valid(pattern));
	assert(glob_match(VIEW("**"), name));
	assert(glob_match(VIEW("*"), name) == !view_has(name, '/'));
	check_quoted(name);
	return 0;
}
