/*
 * warden/options.h - the command line: written by the supervisor, not by people.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/macro.h"

struct err;

#define OPTIONS_HOST_PATHS_MAX 256

struct options {
	const char *state_dir;
	const char *execd;
	const char *subnet;
	const char *host_paths[OPTIONS_HOST_PATHS_MAX]; /* that volumes may lie in */
	size_t host_paths_n;
	bool network;
	bool policing;
	bool names_only, drop_silently; /* see policy/net_table.h */
	uint32_t seeds;
	gid_t server_gid;
	int supervisor_fd;
	enum log_level log_level;
};

osb_must_check int options_parse(int argc, char **argv, struct options *ret, struct err *e);
