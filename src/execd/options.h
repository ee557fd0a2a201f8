/*
 * execd/options.h - what the daemon was told by its arguments and environment.
 *
 * Arguments win over the environment.  Only a start file (execd/start_file.h) changes them
 * later.
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
	const char *access_token;     /* NULL: everybody may call */
	char *own_token;	      /* our copy, once it was hidden */
	char *own_envs_file;	      /* our copy, if it came with a start file */
	const char *envs_file;	      /* NULL: none */
	const char *log_file;	      /* NULL: stderr */
	const char *state_dir;	      /* NULL: one of our own below $TMPDIR or /tmp */
	const char *status_file;      /* NULL: none */
	int start_fd;		      /* brings the start file; -1: none */
	int status_fd;		      /* gets the exit status too; -1: none */
	int log_fd;		      /* gets what the entrypoint writes; -1: our own streams do */
	uint64_t log_max;	      /* bytes */
	const char *isolation_config; /* TOML file; NULL: none */
	const char *isolation_upper_root; /* NULL: as the file says */
	struct strv isolation_allowed;	  /* empty: as the file says */
	const char *code_pool; /* interpreters started ahead, like "python:2"; NULL: none */
	char *own_code_pool;   /* our copy, if it came with a start file */
	enum log_level log_level;
	uint64_t grace_ms;
	bool init;
	bool harden; /* what is started gets a stricter system call filter */
	bool help;
	bool version;
	char *const *entrypoint; /* argv, or NULL */
};

/* Strings are borrowed from `argv` and the environment.  -EINVAL with a sentence. */
osb_must_check int options_parse(struct options *o, int argc, char *const *argv, struct err *e);

/* Takes the token out of the arguments and the environment, where everybody in /proc could read it.
 */
void options_hide_token(struct options *o);

/* Settings that a sandbox's own environment may make: the file of variables, the grace.  Takes the
 * token out of it; bad values are left alone. */
void options_take_env(struct options *o, struct strv *env);

void options_done(struct options *o);

/* The text of --help. */
extern const char options_help[];
