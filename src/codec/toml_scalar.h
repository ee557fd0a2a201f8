/*
 * codec/toml_scalar.h - the parts of TOML without structure: strings, numbers, dates.
 *
 * Only codec/toml.c uses this.  Each function reads at the reader's place and steps over what
 * it read.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"
#include "base/view.h"

struct arena;
struct err;
struct toml;

struct toml_reader {
	struct view rest;
	unsigned line;
	struct arena *arena;
	struct err *e;
};

/* Fills the reader's error: "line N: ..." */
int toml_error(struct toml_reader *r, const char *fmt, ...) osb_printf(2, 3);

/* Steps over "\n" or "\r\n"; false when there is none. */
bool toml_skip_newline(struct toml_reader *r);

/* A string in any of its four forms; multi-line ones only with TOML_MULTI_LINE. */
enum toml_string_flags { TOML_ONE_LINE, TOML_MULTI_LINE };
osb_must_check int toml_read_string(struct toml_reader *r, enum toml_string_flags flags,
				    struct view *ret);

/* A boolean, integer, float or datetime. */
osb_must_check int toml_read_bare(struct toml_reader *r, struct toml *ret);
