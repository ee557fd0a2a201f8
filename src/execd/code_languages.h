/*
 * execd/code_languages.h - the languages that have a driver: one row each.
 *
 * docs/internals/code-drivers.md says what a driver is and how to add one.
 */
#pragma once

#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct err;
struct strv;

enum code_flags {
	CODE_INTERRUPT_MESSAGE = 1, /* runs are interrupted by a message, not by SIGINT */
	CODE_SHELL = 2,	 /* a shell: reads its runs as shell text from its standard input */
	CODE_HIDDEN = 4, /* has no contexts that clients see */
};

#define CODE_FILES_MAX 3

struct code_language {
	const char *name; /* as clients say it */
	/*
	 * Candidates in order, NULL at the end: names for PATH, or absolute paths whose directories
	 * may have patterns.  "%v" is the wanted version; a candidate with it counts only if one is
	 * wanted.
	 */
	const char *const *programs;
	const char *version_env; /* names the wanted version; or NULL */
	/* Arguments behind the program: {driver}, {text} and {program} are replaced. */
	const char *const *args;
	const char *script; /* instead: for /bin/sh, which makes the program ("$0") run; or NULL */
	const char *files[CODE_FILES_MAX + 1]; /* of the driver; descriptors 4, 5, ... */
	const char *install;		       /* what is missing when there is no program */
	unsigned flags;
};

/* NULL: no such language. */
const struct code_language *code_language_find(struct view name);

/*
 * The program of a language in a sandbox with this environment; *ret is the caller's.  -ENOENT with
 * a sentence that says what to install.
 */
osb_must_check int code_language_program(const struct code_language *l, const struct strv *env,
					 char **ret, struct err *e);

/* The files of all drivers, made by tools/embed_drivers.py; ends with a row without a name. */
struct code_driver_file {
	const char *name;
	struct view packed;
	size_t size; /* unpacked */
};

extern const struct code_driver_file code_driver_files[];

/* The text of a driver's file, for the caller to free; it ends with a NUL. */
char *code_driver_text(const char *name, size_t *ret_len);
