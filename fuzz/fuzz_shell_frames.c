/*
 * Reports of a session's shell: every frame lies within the input, and the input only shrinks.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/view.h"
#include "execd/shell_script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view in = view_mem(data, size);
	const char *end = in.p + in.len;
	struct shell_frame f;

	for (;;) {
		size_t before = in.len;

		if (shell_frame_next(&in, &f) == SHELL_FRAME_NONE)
			break;
		assert(in.len < before && in.p + in.len == end);
		assert(f.text.len == 0 ||
		       (f.text.p >= (const char *)data && f.text.p + f.text.len < end));
		assert(f.text.len == 0 || !view_has(f.text, '\0'));
	}
	assert(!view_has(in, '\0'));
	return 0;
}
