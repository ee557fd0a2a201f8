/*
 * base/arena.h - memory that dies together: one arena per request.
 *
 * Nothing is freed singly.  Each arena has a ceiling; arena_alloc() returns NULL above it,
 * and so do the helpers built on it.  Destructors registered with arena_defer() run in
 * reverse order when the arena ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct arena_block;
struct arena_defer;

struct arena {
	struct arena_block *blocks;
	struct arena_defer *defers;
	size_t used;
	size_t max;
	bool secret; /* memory is wiped before it is given back, or used again */
};

typedef void arena_defer_fn(void *arg);

void arena_init(struct arena *a, size_t max);
void arena_done(struct arena *a); /* runs the destructors, frees everything; may be used again */

/* The same, but keeps some memory for the next use. */
void arena_reset(struct arena *a);

osb_must_check void *arena_alloc(struct arena *a, size_t size); /* zeroed, aligned to 16 */
osb_must_check char *arena_strndup(struct arena *a, const char *s, size_t len); /* NUL-terminated */
osb_must_check char *arena_str(struct arena *a, struct view v); /* NUL-terminated copy */
osb_must_check char *arena_printf(struct arena *a, const char *fmt, ...) osb_printf(2, 3);
osb_must_check int arena_view(struct arena *a, struct view v, struct view *ret); /* 0 or -E2BIG */

/* Runs fn(arg) when the arena ends.  Never fails: the bookkeeping is not counted. */
void arena_defer(struct arena *a, arena_defer_fn *fn, void *arg);
