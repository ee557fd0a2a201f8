/*
 * execd/file_names.h - file names are bytes, JSON strings are characters: a reversible bridge.
 *
 * A byte of a name that is not part of well-formed UTF-8 is written as the private-use character
 * U+10F700 + byte (U+10F780..U+10F7FF), one character per byte.  A name that really holds such a
 * character has it written byte by byte in the same way, so that the text always leads back to
 * exactly one name.  Everything else stays as it is.
 */
#pragma once

#include "base/macro.h"
#include "base/view.h"

struct arena;
struct buf;

/* Name to text.  The result is `name` itself when nothing has to be escaped. */
osb_must_check int file_name_escape(struct buf *out, struct view name); /* appends; 0 or -E2BIG */

/* Text to name; bytes that are no UTF-8 stay themselves.  *ret is `text` or lives in the arena. */
osb_must_check int file_name_unescape(struct arena *a, struct view text, struct view *ret);

#define FILE_NAME_SHORT 160

/* For messages: the whole path, or "..." and its end. */
const char *file_name_short(const char *path, char ret[FILE_NAME_SHORT]);
