/*
 * codec/lines.h - cuts a stream of bytes into the lines of the protocol.
 *
 * "\n", "\r" and "\r\n" end a line; the terminator is not part of it.  A line that ends with "\r"
 * at the end of the input is delivered at once, and a "\n" that follows later is swallowed.
 * A line longer than the limit is delivered in pieces that never cut a UTF-8 sequence.
 *
 * No byte is looked at twice: `scanned` remembers how far the unfinished line was searched.  The
 * caller keeps the rest of the input (it may move it), appends to it and calls again; only
 * lines_next() and lines_rest() may take bytes off its front.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct lines {
	size_t scanned; /* this many bytes at the front of the rest hold no terminator */
	bool after_cr;	/* the last byte was "\r": a "\n" now belongs to it */
	bool cut;	/* the last thing delivered was a piece: its bare terminator is no line */
};

enum lines_result {
	LINES_MORE, /* no complete line in the input */
	LINES_LINE, /* *ret is a line without its terminator, maybe empty */
	LINES_PART, /* *ret is max bytes (or a little less) of an unfinished line */
};

/*
 * Takes the next line off the front of *in.  `*in` is advanced over what was used.
 * On LINES_MORE the unused rest stays in *in: keep it, append to it, call again.  The rest is
 * always shorter than `max_line` (at least 4).
 */
enum lines_result lines_next(struct lines *l, struct view *in, size_t max_line, struct view *ret);

/*
 * Takes the unfinished line off *in although no terminator has come: a prompt, or the last line.
 * Unless `at_end`, the bytes of an incomplete UTF-8 sequence stay.  False when nothing was taken.
 * Only after LINES_MORE.
 */
bool lines_rest(struct lines *l, struct view *in, bool at_end, struct view *ret);
