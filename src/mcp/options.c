/*
 * mcp/options.c - see options.h.
 */
#include "mcp/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"

const char options_help[] =
	"Usage: opensandbox-mcp [OPTION]...\n"
	"Sandboxes as tools of the Model Context Protocol.\n"
	"\n"
	"  --transport stdio|streamable-http  how clients reach it (stdio)\n"
	"  --host ADDRESS                     of streamable-http (127.0.0.1)\n"
	"  --port PORT                        of streamable-http (8000)\n"
	"  --domain DOMAIN                    the OpenSandbox server (localhost:8080)\n"
	"  --protocol http|https              how it is spoken to (http)\n"
	"  --api-key KEY                      its key\n"
	"  --request-timeout-seconds SECONDS  of one request to it (30)\n"
	"  --embedded                         start a server of its own instead, for as long\n"
	"                                     as this program runs; needs root\n"
	"  --help, --version\n"
	"\n"
	"OPEN_SANDBOX_DOMAIN, OPEN_SANDBOX_API_KEY, OPEN_SANDBOX_PROTOCOL and\n"
	"OPEN_SANDBOX_REQUEST_TIMEOUT stand for options that are not given.\n";

enum { TRANSPORT = 1000, HOST, PORT, DOMAIN, PROTOCOL, API_KEY, TIMEOUT, EMBEDDED, HELP, VERSION };

static const struct option known[] = {
	{"transport", required_argument, NULL, TRANSPORT},
	{"host", required_argument, NULL, HOST},
	{"port", required_argument, NULL, PORT},
	{"domain", required_argument, NULL, DOMAIN},
	{"protocol", required_argument, NULL, PROTOCOL},
	{"api-key", required_argument, NULL, API_KEY},
	{"request-timeout-seconds", required_argument, NULL, TIMEOUT},
	{"embedded", no_argument, NULL, EMBEDDED},
	{"help", no_argument, NULL, HELP},
	{"version", no_argument, NULL, VERSION},
	{NULL, 0, NULL, 0},
};

static int take_timeout(const char *text, uint32_t *ret, struct err *e)
{
	char *end = NULL;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 0.001 && seconds <= 86400))
		return err_set(e, -EINVAL,
			       "--request-timeout-seconds: '%s' is no number of seconds up to "
			       "86400",
			       text);
	*ret = (uint32_t)(seconds * 1000);
	return 0;
}

static int take_transport(const char *text, bool *ret, struct err *e)
{
	*ret = strcmp(text, "streamable-http") == 0;
	if (!*ret && strcmp(text, "stdio") != 0)
		return err_set(e, -EINVAL, "--transport: '%s' is neither stdio nor streamable-http",
			       text);
	return 0;
}

static int take(int option, const char *value, struct options *o, struct err *e)
{
	uint32_t port;

	switch (option) {
	case TRANSPORT:
		return take_transport(value, &o->http, e);
	case HOST:
		o->host = strcmp(value, "localhost") == 0 ? "127.0.0.1" : value;
		return 0;
	case PORT:
		if (!num_parse_u32(view_of(value), &port) || port > 65535)
			return err_set(e, -EINVAL, "--port: '%s' is no port", value);
		o->port = (uint16_t)port;
		return 0;
	case DOMAIN:
		o->domain = value;
		return 0;
	case PROTOCOL:
		o->protocol = value;
		if (strcmp(value, "http") != 0 && strcmp(value, "https") != 0)
			return err_set(e, -EINVAL, "--protocol: '%s' is neither http nor https",
				       value);
		return 0;
	case API_KEY:
		o->api_key = value;
		return 0;
	case TIMEOUT:
		return take_timeout(value, &o->timeout_ms, e);
	case EMBEDDED:
		o->embedded = true;
		return 0;
	case HELP:
		o->help = true;
		return 0;
	default:
		o->version = true;
		return 0;
	}
}

int options_parse(int argc, char **argv, struct options *ret, struct err *e)
{
	int option, r = 0;

	*ret = (struct options){.host = "127.0.0.1", .port = 8000};
	opterr = 0;
	optind = 1;
	while (r == 0 && (option = getopt_long(argc, argv, ":", known, NULL)) != -1) {
		if (option == ':' || option == '?')
			return err_set(e, -EINVAL, "'%s' %s; --help shows the options",
				       argv[optind - 1],
				       option == ':' ? "needs a value" : "is not understood");
		r = take(option, optarg, ret, e);
	}
	if (r == 0 && optind < argc)
		return err_set(e, -EINVAL, "'%s' is not understood; --help shows the options",
			       argv[optind]);
	if (r == 0 && ret->embedded && (ret->domain || ret->api_key || ret->protocol))
		return err_set(e, -EINVAL,
			       "--embedded has a server of its own: --domain, "
			       "--protocol and --api-key do not go with it");
	return r;
}
