/*
 * codec/entry_lines.h - the lines of a sandbox's log: when, from where, what.
 *
 * "2026-11-15T09:28:09.123456Z stdout text".  Nothing that a program writes can look like the
 * line of another source: each line gets its own front, and a source has no blanks.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/macro.h"
#include "base/view.h"
#include "codec/lines.h"

#define ENTRY_LINE_MAX	  16384 /* bytes of text; longer lines are cut into several */
#define ENTRY_LINE_CHUNK  16384 /* bytes that may be added at a time */
#define ENTRY_SOURCE_MAX  64	/* bytes of a source's name; the rest is left out */
#define ENTRY_FRONT_BYTES 128	/* room that a line needs beside its text */

struct entry_lines {
	struct lines lines;
	struct buf rest; /* a line that has no end yet */
};

void entry_lines_init(struct entry_lines *l);
void entry_lines_done(struct entry_lines *l);

/* Adds up to ENTRY_LINE_CHUNK bytes, once entry_lines_next() has given everything. */
void entry_lines_add(struct entry_lines *l, struct view bytes);

/* The next line, until the next call; with `at_end` also one without an end.  False: no more. */
bool entry_lines_next(struct entry_lines *l, bool at_end, struct view *ret);

/* Appends one line of the log.  -E2BIG. */
osb_must_check int entry_lines_format(struct buf *out, const char *stamp, struct view source,
				      struct view text);
