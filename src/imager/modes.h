/*
 * imager/modes.h - what a program of this folder can do; each has a table of its own.
 */
#pragma once

#include <stddef.h>

struct err;
struct job;
struct options;

struct mode {
	const char *name;
	const char *help;
	const char *program; /* the one beside us that does it, or NULL: we do */
	int (*confine)(const struct options *o, struct err *e);
	void (*run)(struct job *j); /* answers with "done" or "failed" */
};

extern const struct mode modes[];
extern const size_t modes_n;
