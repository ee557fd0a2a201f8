/*
 * mcp/main.c - opensandbox-mcp: sandboxes as tools of the Model Context Protocol.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "mcp/embedded.h"
#include "mcp/mcp.h"
#include "mcp/options.h"
#include "mcp/outputs.h"
#include "mcp/pool.h"
#include "mcp/registry.h"
#include "mcp/standard.h"
#include "mcp/web.h"

#define EXIT_USAGE 2

/* `own` is the server that was started for us, or NULL. */
static int serve(const struct options *o, const struct embedded *own)
{
	osb_config config = {
		.domain = own ? embedded_domain(own) : o->domain,
		.protocol = own ? "http" : o->protocol,
		.api_key = own ? embedded_key(own) : o->api_key,
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

static int serve_embedded(const struct options *o)
{
	struct embedded *own = NULL;
	struct err e = ERR_NONE;
	sigset_t ends;
	int code;

	/* Whoever ends us meanwhile shall not leave a server behind: the transports hear of it. */
	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGTERM);
	(void)sigaddset(&ends, SIGINT);
	(void)pthread_sigmask(SIG_BLOCK, &ends, NULL);
	if (embedded_start(&own, &e) < 0) {
		fprintf(stderr, "opensandbox-mcp: --embedded: %s\n", e.msg);
		return EXIT_FAILURE;
	}
	code = serve(o, own);
	embedded_stop(own);
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
	return o.embedded ? serve_embedded(&o) : serve(&o, /* own= */ NULL);
}
