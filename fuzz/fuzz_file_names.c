/*
 * File names as text: every name becomes valid UTF-8 and comes back byte for byte.
 */
#include <assert.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "execd/file_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(4 * size + 1);
	osb_cleanup(arena_done) struct arena a;
	struct view name = view_mem(data, size), back;

	arena_init(&a, 16 * size + 4096);
	assert(file_name_escape(&text, name) == 0);
	assert(utf8_valid(buf_view(&text)));
	assert(file_name_unescape(&a, buf_view(&text), &back) == 0);
	assert(view_eq(back, name));

	/* Any text, a name already or not, is read without growing. */
	assert(file_name_unescape(&a, name, &back) == 0);
	assert(back.len <= size);
	return 0;
}
