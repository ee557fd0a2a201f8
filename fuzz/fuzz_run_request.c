/*
 * fuzz_run_request.c - bodies of sessions, terminals and isolated runs.
 *
 * Whatever is accepted holds no NUL, has a script where one is required, and a time limit in its
 * range; whatever is refused says why.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "execd/run_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int r, const struct err *e)
{
	assert(r == 0 || (r == e->code && e->msg[0] != '\0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view body = view_mem(data, size);
	struct isolated_run_request isolated;
	struct session_run_request run;
	struct shell_request shell;
	struct err e = ERR_NONE;
	int r;

	r = shell_request_decode(body, &shell, &e);
	check(r, &e);
	assert(r < 0 || (!view_has(shell.cwd, '\0') && !view_has(shell.command, '\0')));
	shell_request_done(&shell);

	r = session_run_request_decode(body, &run, &e);
	check(r, &e);
	assert(r < 0 ||
	       (run.command.len > 0 && !view_has(run.command, '\0') && run.timeout_ms > 0));
	session_run_request_done(&run);

	r = isolated_run_request_decode(body, &isolated, &e);
	check(r, &e);
	assert(r < 0 || (isolated.code.len > 0 && isolated.timeout_s >= 0));
	for (size_t i = 0; r == 0 && i < isolated.envs.len; i++)
		assert(strchr(isolated.envs.v[i], '=') > isolated.envs.v[i]);
	isolated_run_request_done(&isolated);
	return 0;
}
