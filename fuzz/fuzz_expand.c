/*
 * Expansion: what has neither "~" nor "$" stays itself, and both forms agree where both succeed.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/expand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *lookup(void *arg, struct view name)
{
	assert(name.len > 0 && !view_has(name, '}') && !view_has(name, '$'));
	if (view_is(name, "A"))
		return "$A${A}~";
	return view_is(name, "B") ? "" : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view in = view_mem(data, size), path, vars;
	struct err e = ERR_NONE;
	struct arena a;
	int r, s;

	arena_init(&a, 1 << 20);
	r = expand_path(&a, in, "/home", lookup, NULL, &path, &e);
	s = expand_vars(&a, in, lookup, NULL, &vars);
	assert(r == 0 || ((r == -EINVAL || r == -E2BIG) && e.code == r && e.msg[0]));
	assert(s == 0 || s == -E2BIG);
	if (r == 0 && s == 0 && !(size > 0 && data[0] == '~'))
		assert(view_eq(path, vars));
	if (r == 0 && !view_has(in, '$') && !view_has(in, '~'))
		assert(view_eq(path, in));
	arena_done(&a);
	return 0;
}
