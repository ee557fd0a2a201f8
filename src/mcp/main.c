/*
 * mcp/main.c - opensandbox-mcp: sandboxes as tools of the Model Context Protocol.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "mcp/mcp.h"
#include "mcp/options.h"
#include "mcp/outputs.h"
#include "mcp/pool.h"
#include "mcp/registry.h"
#include "mcp/standard.h"
#include "mcp/web.h"

#define EXIT_USAGE 2

static int serve(const struct options *o)
{
	osb_config config = {
		.domain = o->domain,
		.protocol = o->protocol,
		.api_key = o->api_key,
		.timeout_ms = o->timeout_ms,
		.user_agent = "opensandbox-mcp/" OSB_VERSION,
	};
	struct mcp mcp = {0};
	osb_error e;
	int code;

	if (osb_client_new(&config, &mcp.client, &e) < 0) {
		fprintf(stderr, "opensandbox-mcp: %s\n", e.message);
		return EXIT_USAGE;
	}
	mcp.registry = registry_new();
	mcp.outputs = outputs_new();
	mcp.pool = pool_new();
	code = o->http ? web_serve(&mcp, o) : standard_serve(&mcp);
	pool_free(mcp.pool);
	outputs_free(mcp.outputs);
	registry_free(mcp.registry);
	osb_client_free(mcp.client);
	return code;
}

int main(int argc, char **argv)
{
	struct err e = ERR_NONE;
	struct options o;

	(void)signal(SIGPIPE, SIG_IGN);
	log_init("opensandbox-mcp", LOG_INFO, 2);
	if (options_parse(argc, argv, &o, &e) < 0) {
		fprintf(stderr, "opensandbox-mcp: %s\n", e.msg);
		return EXIT_USAGE;
	}
	if (o.help) {
		fputs(options_help, stdout);
		return EXIT_SUCCESS;
	}
	if (o.version) {
		puts("opensandbox-mcp " OSB_VERSION);
		return EXIT_SUCCESS;
	}
	return serve(&o);
}
