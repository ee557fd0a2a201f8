/*
 * codec/lines.h - cuts a stream of bytes into the lines of the protocol.
 *
 * "\n", "\r" and "\r\n" end a line; the terminator is not part of it.  A "\r" at the end of the
 * input is held back as the end of a line whose "\n" may follow.  A line longer than the
 * limit is delivered in pieces that never cut a UTF-8 sequence.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct lines {
	bool after_cr; /* the last byte was "\r": a "\n" now belongs to it */
};

enum lines_result {
	LINES_MORE, /* no complete line in the input */
	LINES_LINE, /* *ret is a line without its terminator, maybe empty */
	LINES_PART, /* *ret is max bytes (or a little less) of an unfinished line */
};

/*
 * Takes the next line off the front of *in.  `*in` is advanced over what was used.
 * On LINES_MORE the unused rest stays in *in: keep it, append to it, call again.
 */
enum lines_result lines_next(struct lines *l, struct view *in, size_t max_line, struct view *ret);
