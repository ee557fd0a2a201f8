/*
 * mcp/options.h - the command line.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"

struct err;

struct options {
	bool http; /* else standard input and output */
	const char *api_key, *domain, *protocol;
	uint32_t timeout_ms;
	const char *host;
	uint16_t port;
	bool embedded; /* start a server; api_key, domain and protocol are its own */
	bool help, version;
};

extern const char options_help[];

/* -EINVAL with a sentence. */
osb_must_check int options_parse(int argc, char **argv, struct options *ret, struct err *e);
