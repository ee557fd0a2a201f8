/*
 * warden/options.h - the command line: written by the supervisor, not by people.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/macro.h"

struct err;

struct options {
	const char *state_dir;
	const char *execd;
	const char *subnet;
	bool network;
	uint32_t seeds;
	gid_t server_gid;
	int supervisor_fd;
	enum log_level log_level;
};

osb_must_check int options_parse(int argc, char **argv, struct options *ret, struct err *e);
