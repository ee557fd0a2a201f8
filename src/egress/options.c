/*
 * egress/options.c - getopt over a few options of our own and one for every setting.
 */
#include "egress/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "egress/settings.h"

enum { OPT_SUPERVISOR_FD = 1, OPT_USER, OPT_HELP, OPT_VERSION, OPT_SETTING };

static const struct option own[] = {
	{"supervisor-fd", required_argument, NULL, OPT_SUPERVISOR_FD},
	{"user", required_argument, NULL, OPT_USER},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
};

#define SETTINGS_MAX 48
#define FLAG_MAX     48

struct flags {
	struct option options[ARRAY_LEN(own) + SETTINGS_MAX + 1];
	char names[SETTINGS_MAX][FLAG_MAX];
};

/* MAX_RULES is --max-rules. */
static void flag_of(const char *name, char ret[FLAG_MAX])
{
	size_t i = 0;

	for (; name[i] && i < FLAG_MAX - 1; i++) {
		char c = name[i];

		ret[i] = c == '_' ? '-' : (c >= 'A' && c <= 'Z') ? (char)(c + ('a' - 'A')) : c;
	}
	ret[i] = '\0';
}

static void list_flags(struct flags *f)
{
	size_t n = ARRAY_LEN(own);

	memset(f, 0, sizeof(*f));
	memcpy(f->options, own, sizeof(own));
	for (size_t i = 0; i < settings_n() && i < SETTINGS_MAX; i++) {
		if (settings_secret(i))
			continue;
		flag_of(settings_name(i), f->names[i]);
		f->options[n++] =
			(struct option){f->names[i], required_argument, NULL, OPT_SETTING + (int)i};
	}
}

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

static int take(int c, struct options *o, struct settings *settings, struct err *e)
{
	uint32_t n;

	switch (c) {
	case OPT_SUPERVISOR_FD:
		if (!num_parse_u32(view_of(optarg), &n) || n > 1023)
			return err_set(e, -EINVAL, "--supervisor-fd takes a number, not '%s'",
				       optarg);
		o->supervisor_fd = (int)n;
		return 0;
	case OPT_USER:
		return take_user(o, e);
	case OPT_HELP:
		o->help = true;
		return 0;
	case OPT_VERSION:
		o->version = true;
		return 0;
	default:
		if (c >= OPT_SETTING && (size_t)(c - OPT_SETTING) < settings_n())
			return settings_set(settings, (size_t)(c - OPT_SETTING), optarg, e);
		return err_set(e, -EINVAL, "unknown option; see --help");
	}
}

int options_parse(int argc, char **argv, struct options *ret, struct settings *settings,
		  struct err *e)
{
	struct options o = {.supervisor_fd = -1};
	struct flags f;
	int c, r = 0;

	list_flags(&f);
	opterr = 0;
	while (r == 0 && (c = getopt_long(argc, argv, "", f.options, NULL)) != -1)
		r = take(c, &o, settings, e);
	if (r == 0 && optind < argc)
		r = err_set(e, -EINVAL, "'%s' is no option; see --help", argv[optind]);
	if (r < 0)
		return r;
	*ret = o;
	return 0;
}

void options_print_help(void)
{
	printf("usage: opensandbox-egress [OPTIONS]\n\n"
	       "Decides what sandboxes may reach.  Beside opensandbox-server, which starts it "
	       "with\n"
	       "--supervisor-fd, it does so for all of them.  Alone it is a sidecar: it closes "
	       "the\n"
	       "network namespace that it is in, which takes root or CAP_NET_ADMIN, and answers "
	       "on\n"
	       "port 18080.\n\n"
	       "Settings are options, or variables whose names begin with " SETTINGS_PREFIX ":\n");
	for (size_t i = 0; i < settings_n(); i++) {
		char flag[FLAG_MAX + 2] = "--";

		flag_of(settings_name(i), flag + 2);
		printf("  %s%s\n", settings_secret(i) ? "" : flag,
		       settings_secret(i) ? "(variable only)" : "");
		printf("      %s: %s\n", settings_name(i), settings_help(i));
	}
	printf("\nother options:\n"
	       "  --supervisor-fd N  started by opensandbox-server\n"
	       "  --user UID:GID     become this user, keeping CAP_NET_ADMIN alone\n"
	       "  --version          print the version\n"
	       "  --help             print this\n");
}
