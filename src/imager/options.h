/*
 * imager/options.h - the command line of opensandbox-image.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/macro.h"

struct err;

struct options {
	const char *mode;      /* NULL with `help` or `version` */
	const char *state_dir; /* or NULL: file descriptor 4 */
	bool help, version;
	bool change_user;
	uid_t uid;
	gid_t gid;
};

osb_must_check int options_parse(int argc, char **argv, struct options *ret, struct err *e);
