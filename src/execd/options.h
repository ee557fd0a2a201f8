/*
 * execd/options.h - what the daemon was told by its arguments and environment.
 *
 * Arguments win over the environment.  Nothing here is changed after the start.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/macro.h"
#include "base/strv.h"

struct err;

struct options {
	struct strv listen; /* "unix:PATH", "tcp:IP:PORT", "fd:N"; empty: every IPv4 address */
	uint16_t port;	    /* of the default listener */
	const char *access_token;	  /* NULL: everybody may call */
	char *own_token;		  /* our copy, once it was hidden */
	const char *envs_file;		  /* NULL: none */
	const char *log_file;		  /* NULL: stderr */
	const char *state_dir;		  /* NULL: one of our own below $TMPDIR or /tmp */
	const char *status_file;	  /* NULL: none */
	const char *isolation_config;	  /* TOML file; NULL: none */
	const char *isolation_upper_root; /* NULL: as the file says */
	struct strv isolation_allowed;	  /* empty: as the file says */
	enum log_level log_level;
	uint64_t grace_ms;
	bool init;
	bool help;
	bool version;
	char *const *entrypoint; /* argv, or NULL */
};

/* Strings are borrowed from `argv` and the environment.  -EINVAL with a sentence. */
osb_must_check int options_parse(struct options *o, int argc, char *const *argv, struct err *e);

/* Takes the token out of the arguments and the environment, where everybody in /proc could read it.
 */
void options_hide_token(struct options *o);

void options_done(struct options *o);

/* The text of --help. */
extern const char options_help[];
