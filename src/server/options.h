/*
 * server/options.h - the command line.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"

struct err;

enum options_verb {
	OPTIONS_SERVE,
	OPTIONS_INIT_CONFIG,
	OPTIONS_CONFIG_REFERENCE,
	OPTIONS_HELP,
	OPTIONS_VERSION,
};

struct options {
	enum options_verb verb;
	const char *config;  /* --config, or NULL */
	const char *warden;  /* or NULL: beside our own program */
	const char *execd;   /* or NULL: beside our own program */
	const char *image;   /* or NULL: beside our own program */
	const char *egress;  /* or NULL: beside our own program, if it is there */
	const char *path;    /* of init-config; or NULL */
	const char *example; /* of init-config; or NULL */
	bool force;
};

extern const char options_help[];

osb_must_check int options_parse(int argc, char **argv, struct options *ret, struct err *e);

/* Where the configuration is: the option, SANDBOX_CONFIG_PATH, or ~/.sandbox.toml.  The caller
 * frees it.  NULL without any of them and without a home. */
char *options_config_path(const char *given);
