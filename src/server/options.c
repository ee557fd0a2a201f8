/*
 * server/options.c - getopt over a fixed set of long options, and one verb.
 */
#include "server/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

const char options_help[] =
	"usage: opensandbox-server [--config FILE]\n"
	"       opensandbox-server init-config [FILE] [--example native] [--force]\n"
	"       opensandbox-server config-reference\n"
	"\n"
	"Serves the OpenSandbox lifecycle API and makes sandboxes on this machine.\n"
	"\n"
	"  --config FILE     configuration in TOML (SANDBOX_CONFIG_PATH; ~/.sandbox.toml)\n"
	"  --warden FILE     the privileged helper (opensandbox-warden beside this program)\n"
	"  --execd FILE      the daemon of sandboxes (execd beside this program)\n"
	"  --image FILE      the helper for images (opensandbox-image beside this program)\n"
	"  --egress FILE     the filter of networks (opensandbox-egress beside this program)\n"
	"  --help, --version\n"
	"\n"
	"init-config writes a configuration with every key, its meaning and default, and a fresh\n"
	"API key; with --example only what a first server needs.  --force replaces a file.\n"
	"config-reference prints the meaning of every key as Markdown.\n";

enum {
	OPT_CONFIG = 1,
	OPT_WARDEN,
	OPT_EXECD,
	OPT_IMAGE,
	OPT_EGRESS,
	OPT_EXAMPLE,
	OPT_FORCE,
	OPT_HELP,
	OPT_VERSION
};

static const struct option long_options[] = {
	{"config", required_argument, NULL, OPT_CONFIG},
	{"warden", required_argument, NULL, OPT_WARDEN},
	{"execd", required_argument, NULL, OPT_EXECD},
	{"image", required_argument, NULL, OPT_IMAGE},
	{"egress", required_argument, NULL, OPT_EGRESS},
	{"example", required_argument, NULL, OPT_EXAMPLE},
	{"force", no_argument, NULL, OPT_FORCE},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static int take(int c, char **argv, struct options *o, struct err *e)
{
	switch (c) {
	case OPT_CONFIG:
		o->config = optarg;
		return 0;
	case OPT_WARDEN:
		o->warden = optarg;
		return 0;
	case OPT_EXECD:
		o->execd = optarg;
		return 0;
	case OPT_IMAGE:
		o->image = optarg;
		return 0;
	case OPT_EGRESS:
		o->egress = optarg;
		return 0;
	case OPT_EXAMPLE:
		o->example = optarg;
		return 0;
	case OPT_FORCE:
		o->force = true;
		return 0;
	case OPT_HELP:
		o->verb = OPTIONS_HELP;
		return 0;
	case OPT_VERSION:
		o->verb = OPTIONS_VERSION;
		return 0;
	case ':':
		return err_set(e, -EINVAL, "%s needs a value", argv[optind - 1]);
	default:
		return err_set(e, -EINVAL, "there is no option %s; see --help", argv[optind - 1]);
	}
}

/* What stands beside the options: a verb, and the path of init-config. */
static int take_words(char **words, struct options *o, struct err *e)
{
	if (words[0] && strcmp(words[0], "init-config") == 0) {
		o->verb = OPTIONS_INIT_CONFIG;
		o->path = words[1];
		words += words[1] ? 2 : 1;
	} else if (words[0] && strcmp(words[0], "config-reference") == 0) {
		o->verb = OPTIONS_CONFIG_REFERENCE;
		words++;
	}
	if (words[0])
		return err_set(e, -EINVAL, "what is '%s'? see --help", words[0]);
	if (o->verb != OPTIONS_INIT_CONFIG && (o->example || o->force))
		return err_set(e, -EINVAL, "--example and --force belong to init-config");
	if (o->example && strcmp(o->example, "native") != 0)
		return err_set(e, -EINVAL, "there is one example: native, not '%s'", o->example);
	return 0;
}

int options_parse(int argc, char **argv, struct options *ret, struct err *e)
{
	struct options o = {0};
	int c;

	opterr = 0;
	optind = 0; /* begin anew, also in the same process */
	while ((c = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		int r = take(c, argv, &o, e);

		if (r < 0)
			return r;
		if (o.verb == OPTIONS_HELP || o.verb == OPTIONS_VERSION)
			break;
	}
	if (o.verb == OPTIONS_SERVE) {
		int r = take_words(argv + optind, &o, e);

		if (r < 0)
			return r;
	}
	*ret = o;
	return 0;
}

char *options_config_path(const char *given)
{
	const char *home = getenv("HOME"), *path = given;

	if (!path)
		path = getenv("SANDBOX_CONFIG_PATH");
	if (!path || !path[0])
		path = "~/.sandbox.toml";
	if (path[0] != '~' || path[1] != '/')
		return mem_strdup(path);
	return home && home[0] ? mem_printf("%s%s", home, path + 1) : NULL;
}
