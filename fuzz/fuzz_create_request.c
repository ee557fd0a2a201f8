/*
 * Bodies of POST /sandboxes: whatever is accepted can be started, stored and read back the same.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "server/config.h"
#include "server/failure.h"
#include "server/request_create.h"
#include "server/sandbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(const struct failure *f)
{
	assert(f->status == 400 || f->status == 422 || f->status == 501);
	assert(f->code && f->code[0] && f->message[0]);
}

static void check_stored(const struct sandbox_spec *spec)
{
	struct sandbox_spec again;
	struct err e = ERR_NONE;
	char *text, *text_again;

	assert(sandbox_spec_format(spec, &text, &e) == 0);
	assert(sandbox_spec_parse(view_of(text), &again, &e) == 0);
	assert(sandbox_spec_format(&again, &text_again, &e) == 0);
	assert(strcmp(text, text_again) == 0);
	sandbox_spec_done(&again);
	free(text);
	free(text_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char pattern[] = "opensandbox/code-interpreter:*", image[] = "host";
	static struct config_alias alias = {.pattern = pattern, .image = image};
	const struct config config = {
		.max_sandbox_timeout_seconds = 86400, .aliases = &alias, .aliases_n = 1};
	struct failure f = FAILURE_NONE;
	struct sandbox_spec spec;
	struct err e = ERR_NONE;
	int64_t timeout_s = -1;
	char *start;

	if (request_create(view_mem(data, size), &config, &spec, &timeout_s, &f) < 0) {
		check_refusal(&f);
		return 0;
	}
	assert(timeout_s == 0 || (timeout_s >= 60 && timeout_s <= 86400));
	assert(!spec.image_uri != !spec.snapshot_id);
	assert(spec.image_uri ? spec.image_uri[0] : spec.snapshot_id[0]);
	assert(spec.entrypoint.len == 0 || spec.entrypoint.v[0][0]);
	assert(spec.runtime_limits.pids > 0);
	for (size_t i = 0; i < spec.env.n; i++)
		assert(spec.env.v[i].name[0] && !strchr(spec.env.v[i].name, '='));
	check_stored(&spec);
	assert(sandbox_start_file(&spec, "token", &start, &e) == 0);
	free(start);
	sandbox_spec_done(&spec);
	return 0;
}
