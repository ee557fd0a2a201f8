/*
 * Bodies of POST /command: whatever is accepted can be executed as it is.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "execd/app.h"
#include "execd/command_request.h"
#include "execd/options.h"

#define ARENA_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct options options;
	static struct app app = {.options = &options, .home = "/"};
	struct command_request q;
	struct err e = ERR_NONE;
	struct arena arena;
	int r;

	arena_init(&arena, ARENA_MAX);
	r = command_request_decode(&app, &arena, view_mem(data, size), &q, &e);
	if (r < 0) {
		assert(r == e.code && e.msg[0] != '\0');
	} else {
		assert(q.spec.argv[0] && q.spec.argv[0][0] != '\0');
		assert(q.spec.content.len > 0 && !memchr(q.spec.content.p, 0, q.spec.content.len));
		assert(!q.spec.cwd || q.spec.cwd[0] == '/');
		for (size_t i = 0; q.spec.env[i]; i++)
			assert(strchr(q.spec.env[i], '=') > q.spec.env[i]);
	}
	command_request_done(&q);
	arena_done(&arena);
	return 0;
}
