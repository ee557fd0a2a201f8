/*
 * egress/options.h - the command line of opensandbox-egress.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/macro.h"

struct err;
struct settings;

struct options {
	bool help, version;
	int supervisor_fd; /* -1 = alone, in the namespace of the sandbox */
	bool change_user;
	uid_t uid;
	gid_t gid;
};

/* What is said here counts more than what `settings` has already. */
osb_must_check int options_parse(int argc, char **argv, struct options *ret,
				 struct settings *settings, struct err *e);
void options_print_help(void);
