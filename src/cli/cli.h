/*
 * cli/cli.h - what osb's parts share: the table of commands, and one call of the program.
 */
#pragma once

#include <opensandbox/opensandbox.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/macro.h"

#define CLI_FAILED	1
#define CLI_USAGE	2
#define CLI_INTERRUPTED 130

#define CLI_VALUES_MAX 1024
#define CLI_JSON_MAX   (256u << 20)

/* ---- the table: parsing, --help, man pages and completion are made of it ---- */

struct flag {
	char letter; /* or 0 */
	const char *name;
	const char *value; /* what it takes, for people; NULL = nothing */
	enum { FLAG_ONCE, FLAG_MANY, FLAG_NEEDED } times;
	const char *help;
};

struct cli;

struct command {
	const char *path; /* "sandbox create" */
	/* "ID PATH...", "[NAME]"; words in brackets may be left out; a leading ID is a sandbox,
	 * which is opened for the command */
	const char *arguments;
	const char *summary;	   /* one line */
	const char *more;	   /* or NULL */
	const struct flag *flags;  /* to one without a name; or NULL */
	const char *outputs;	   /* "table json yaml", the first is the default; NULL = none */
	int (*run)(struct cli *c); /* exit code */
};

struct group {
	const char *name, *summary;
};

extern const struct flag cli_globals[];
extern const struct command cli_commands[]; /* to one without a path */
extern const struct group cli_groups[];	    /* the same */

const struct command *command_find(const char *path);
/* "sandbox create" behind "sandbox" is "create"; NULL = it is not behind it. */
const char *path_behind(const char *path, const char *prefix);
/* How many arguments it takes: at least, and at most (SIZE_MAX = any number). */
void command_arity(const struct command *command, size_t *ret_min, size_t *ret_max);

/* ---- one call ---- */

enum cli_format { FORMAT_TABLE, FORMAT_JSON, FORMAT_YAML, FORMAT_RAW };

struct given {
	const struct flag *flag;
	const char *value;
};

struct cli {
	const struct command *command;
	struct given given[CLI_VALUES_MAX];
	size_t given_n;
	char **args; /* of the command */
	size_t args_n;
	enum cli_format format;
	bool color, progress; /* stderr is a terminal, and nobody said otherwise */
	bool quiet;
	osb_client *client;
	osb_sandbox *box;   /* of commands whose first argument is an ID */
	osb_cancel *cancel; /* triggered by an interrupt */
	osb_call call;	    /* with it */
	osb_error e;
};

/* 0, or an exit code after a message.  Words behind "--" are arguments, whatever they look like. */
int cli_parse(struct cli *c, int argc, char **argv);

const char *cli_flag(const struct cli *c, const char *name); /* the last value; NULL = not given */
bool cli_has(const struct cli *c, const char *name);
/* The n-th value of one that may come often; NULL = no more. */
const char *cli_flag_nth(const struct cli *c, const char *name, size_t n);

/* The client, or NULL after a message. */
osb_client *cli_client(struct cli *c);
/* Opens the sandbox that the first argument names. */
osb_sandbox *cli_sandbox(struct cli *c);

/* Says what c->e says, with a hint; returns the exit code. */
int cli_fail(struct cli *c);
/* The same for what osb finds out itself. */
int cli_error(struct cli *c, const char *fmt, ...) osb_printf(2, 3);
/* How the program is called; returns CLI_USAGE. */
int cli_usage(struct cli *c, const char *fmt, ...) osb_printf(2, 3);

/* An exit code from a library's result: 0 stays 0, else cli_fail(). */
int cli_done(struct cli *c, int result);

/* Waits; CLI_INTERRUPTED if an interrupt came first. */
int cli_pause(struct cli *c, int ms);

/* ---- values ---- */

/* "90", "1h30m", "2m5s": seconds. */
osb_must_check bool cli_duration(const char *text, int64_t *ret_s);
/* "K=V"; *ret_name is the caller's. */
osb_must_check bool cli_pair(const char *text, char **ret_name, const char **ret_value);
/* All values of a flag as pairs; NULL after a message.  Freed with cli_pairs_free(). */
osb_pair *cli_pairs(struct cli *c, const char *name, size_t *ret_n);
void cli_pairs_free(osb_pair *v, size_t n);
/* "0644" and "644" are 0644. */
osb_must_check bool cli_mode(const char *text, unsigned *ret);
/* A whole file, "-" = standard input; NULL after a message. */
char *cli_read_file(struct cli *c, const char *path, size_t *ret_n);
/* Words as one command for a shell. */
char *cli_quote_words(char *const *words, size_t n);

/* ---- what the commands do ---- */

int help_show(const struct cli *c, const char *path); /* a command, a group, "" = all */
int help_man(const char *directory);
