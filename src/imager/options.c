/*
 * imager/options.c - getopt over a fixed set of long options; the mode is the only argument.
 */
#include "imager/options.h"

#include <errno.h>
#include <getopt.h>

#include "base/err.h"
#include "base/num.h"

enum { OPT_USER = 1, OPT_STATE_DIR, OPT_HELP, OPT_VERSION };

static const struct option long_options[] = {
	{"user", required_argument, NULL, OPT_USER},
	{"state-dir", required_argument, NULL, OPT_STATE_DIR},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static int take_user(struct options *o, struct err *e)
{
	struct view rest = view_of(optarg), uid;
	uint32_t u, g;

	if (!view_has(rest, ':') || !view_split(&rest, ':', &uid) || !num_parse_u32(uid, &u) ||
	    !num_parse_u32(rest, &g) || u == UINT32_MAX || g == UINT32_MAX)
		return err_set(e, -EINVAL, "--user takes UID:GID, not '%s'", optarg);
	o->change_user = true;
	o->uid = u;
	o->gid = g;
	return 0;
}

static int take(int c, struct options *o, struct err *e)
{
	switch (c) {
	case OPT_USER:
		return take_user(o, e);
	case OPT_STATE_DIR:
		o->state_dir = optarg;
		return 0;
	case OPT_HELP:
		o->help = true;
		return 0;
	case OPT_VERSION:
		o->version = true;
		return 0;
	default:
		return err_set(e, -EINVAL, "unknown option; see --help");
	}
}

int options_parse(int argc, char **argv, struct options *ret, struct err *e)
{
	struct options o = {0};
	int c, r = 0;

	opterr = 0;
	while (r == 0 && (c = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		r = take(c, &o, e);
	if (r < 0)
		return r;
	if (!o.help && !o.version && optind != argc - 1)
		return err_set(e, -EINVAL, "one mode is needed; see --help");
	if (optind < argc)
		o.mode = argv[optind];
	*ret = o;
	return 0;
}
