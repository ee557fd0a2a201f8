/*
 * Start files: what was taken can be executed, and what was refused left nothing.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "execd/start_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = ERR_NONE;
	struct start_file f = {0};

	if (start_file_parse(view_mem(data, size), &f, &e) < 0) {
		assert(e.msg[0] != '\0' && !f.root);
		return 0;
	}
	for (size_t i = 0; i < f.env.len; i++)
		assert(strchr(f.env.v[i], '=') && f.env.v[i][0] != '=');
	assert(!f.cwd || f.cwd[0]);
	assert(!f.token || f.token[0]);
	start_file_done(&f);
	return 0;
}
