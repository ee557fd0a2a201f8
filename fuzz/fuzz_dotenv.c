/*
 * Environment files: names and values are parts of the text that an environment can hold.
 */
#include <assert.h>
#include <stdint.h>

#include "codec/dotenv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct view part, struct view text)
{
	assert(part.len == 0 || (part.p >= text.p && part.p + part.len <= text.p + text.len));
	assert(!view_has(part, '\0') && !view_has(part, '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view text = view_mem(data, size), rest = text, name, value;
	int literal = -1;

	while (dotenv_next(&rest, &name, &value, &literal) == 1) {
		assert(name.len > 0 && !view_has(name, '=') && !view_has(name, ' '));
		assert(literal == 0 || literal == 1);
		check_inside(name, text);
		check_inside(value, text);
		literal = -1;
	}
	assert(rest.len == 0);
	return 0;
}
