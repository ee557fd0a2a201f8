/*
 * warden/options.c - getopt over a fixed set of long options.
 */
#include "warden/options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"

enum {
	OPT_STATE_DIR = 1,
	OPT_EXECD,
	OPT_SUBNET,
	OPT_NO_NETWORK,
	OPT_NO_POLICING,
	OPT_NAMES_ONLY,
	OPT_DROP,
	OPT_SEEDS,
	OPT_GID,
	OPT_FD,
	OPT_HOST_PATH,
	OPT_DEBUG,
	OPT_QUIET
};

static const struct option long_options[] = {
	{"state-dir", required_argument, NULL, OPT_STATE_DIR},
	{"execd", required_argument, NULL, OPT_EXECD},
	{"subnet", required_argument, NULL, OPT_SUBNET},
	{"no-network", no_argument, NULL, OPT_NO_NETWORK},
	{"no-policing", no_argument, NULL, OPT_NO_POLICING},
	{"police-names-only", no_argument, NULL, OPT_NAMES_ONLY},
	{"police-drop", no_argument, NULL, OPT_DROP},
	{"seeds", required_argument, NULL, OPT_SEEDS},
	{"server-gid", required_argument, NULL, OPT_GID},
	{"supervisor-fd", required_argument, NULL, OPT_FD},
	{"host-path", required_argument, NULL, OPT_HOST_PATH},
	{"debug", no_argument, NULL, OPT_DEBUG},
	{"quiet", no_argument, NULL, OPT_QUIET},
	{NULL, 0, NULL, 0},
};

static int number(const char *name, uint32_t max, uint32_t *ret, struct err *e)
{
	if (!num_parse_u32(view_of(optarg), ret) || *ret > max)
		return err_set(e, -EINVAL, "--%s takes a number up to %u, not '%s'", name, max,
			       optarg);
	return 0;
}

static int add_host_path(struct options *o, struct err *e)
{
	if (optarg[0] != '/')
		return err_set(e, -EINVAL, "--host-path takes an absolute path, not '%s'", optarg);
	if (o->host_paths_n == ARRAY_LEN(o->host_paths))
		return err_set(e, -E2BIG, "more than %d host paths", OPTIONS_HOST_PATHS_MAX);
	o->host_paths[o->host_paths_n++] = optarg;
	return 0;
}

static int take(int c, struct options *o, struct err *e)
{
	uint32_t n;
	int r;

	switch (c) {
	case OPT_STATE_DIR:
		o->state_dir = optarg;
		return 0;
	case OPT_EXECD:
		o->execd = optarg;
		return 0;
	case OPT_SUBNET:
		o->subnet = optarg;
		return 0;
	case OPT_NO_NETWORK:
		o->network = false;
		return 0;
	case OPT_NO_POLICING:
		o->policing = false;
		return 0;
	case OPT_NAMES_ONLY:
		o->names_only = true;
		return 0;
	case OPT_DROP:
		o->drop_silently = true;
		return 0;
	case OPT_SEEDS:
		return number("seeds", 256, &o->seeds, e);
	case OPT_GID:
		r = number("server-gid", UINT32_MAX - 1, &n, e);
		o->server_gid = r == 0 ? n : o->server_gid;
		return r;
	case OPT_FD:
		r = number("supervisor-fd", 1023, &n, e);
		o->supervisor_fd = r == 0 ? (int)n : -1;
		return r;
	case OPT_HOST_PATH:
		return add_host_path(o, e);
	case OPT_DEBUG:
		o->log_level = LOG_DEBUG;
		return 0;
	case OPT_QUIET:
		o->log_level = LOG_WARN;
		return 0;
	default:
		return err_set(e, -EINVAL, "unknown option");
	}
}

int options_parse(int argc, char **argv, struct options *ret, struct err *e)
{
	struct options o = {
		.subnet = "10.213.0.0/16",
		.network = true,
		.policing = true,
		.seeds = 8,
		.supervisor_fd = -1,
		.log_level = LOG_INFO,
	};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		int r = take(c, &o, e);

		if (r < 0)
			return r;
	}
	if (!o.state_dir || !o.execd || o.supervisor_fd < 0)
		return err_set(e, -EINVAL,
			       "opensandbox-warden is started by opensandbox-server, not by hand");
	*ret = o;
	return 0;
}
