/*
 * server/diagnostics_text.h - a sandbox in words for people: what it is, what happened to it.
 *
 * Values are escaped: one fact is one line.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"

struct buf;
struct err;
struct runtime_stats;
struct sandbox;
struct sandboxes;
struct strv;

/* One line per event, newest first.  `lifecycle`: only changes of the sandbox's state. */
osb_must_check int diagnostics_events(struct sandboxes *s, const struct sandbox *b, unsigned limit,
				      bool lifecycle, struct buf *out, bool *ret_truncated,
				      struct err *e);

/* Everything that is known.  `stats` may be NULL.  Values of variables whose names speak of secrets
 * are masked.  -E2BIG over the buffer's ceiling. */
osb_must_check int diagnostics_inspect(const struct sandbox *b, const char *runtime,
				       const struct runtime_stats *stats, struct buf *out);

/* Does the name of a variable say that its value is nobody's business? */
bool diagnostics_is_secret(const char *name);
