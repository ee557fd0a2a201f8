/*
 * cli/cmd_run.c - osb run IMAGE -- COMMAND: a sandbox for one command, and nothing left of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/foreground.h"
#include "cli/progress.h"

int run_image(struct cli *c)
{
	osb_cleanup(mem_freep) char *text = cli_quote_words(c->args + 1, c->args_n - 1);
	struct progress progress = {.cli = c, .what = "making a sandbox"};
	osb_command what = OSB_COMMAND_INIT;
	osb_create create = OSB_CREATE_INIT;
	const char *timeout = cli_flag(c, "timeout");
	osb_pair *env, *resources;
	size_t env_n, resources_n = 0;
	osb_sandbox *s = NULL;
	int code = 0;

	if (timeout && !cli_duration(timeout, &create.timeout_s))
		return cli_usage(c, "--timeout: '%s' is no duration like 10m", timeout);
	env = cli_pairs(c, "env", &env_n);
	resources = env ? cli_pairs(c, "resource", &resources_n) : NULL;
	if (!resources || !cli_client(c))
		code = env && resources ? CLI_FAILED : CLI_USAGE;
	create.image = c->args[0];
	create.env = env_n ? env : NULL;
	create.env_n = env_n;
	create.resource_limits = resources_n ? resources : NULL;
	create.resource_limits_n = resources_n;
	what.command = text;
	what.cwd = cli_flag(c, "workdir");
	if (code == 0) {
		int r;

		progress_wait(&progress);
		r = osb_sandbox_create(c->client, &create, &c->call, &s, &c->e);
		progress_end(&progress);
		code = cli_done(c, r);
	}
	if (code == 0)
		code = foreground_run(c, s, NULL, &what);
	if (s && !cli_has(c, "keep"))
		(void)osb_sandbox_kill(s, NULL, NULL);
	else if (s && !c->quiet)
		fprintf(stderr, "osb: kept: %s\n", osb_sandbox_id(s));
	osb_sandbox_free(s);
	cli_pairs_free(resources, resources_n);
	cli_pairs_free(env, env_n);
	return code;
}
