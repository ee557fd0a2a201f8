/*
 * base/view.h - a borrowed run of bytes: pointer and length, never NUL-dependent.
 *
 * Protocol data is passed around as views.  A view owns nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/macro.h"

struct view {
	const char *p;
	size_t len;
};

#define VIEW_NONE   ((struct view){0})
#define VIEW(lit)   ((struct view){(lit), sizeof(lit) - 1})
#define VIEW_FMT    "%.*s"
#define VIEW_ARG(v) (int)(v).len, (v).p

static inline struct view view_of(const char *s)
{
	return (struct view){s, s ? strlen(s) : 0};
}

static inline struct view view_mem(const void *p, size_t len)
{
	return (struct view){(const char *)p, len};
}

bool view_eq(struct view a, struct view b);
bool view_is(struct view a, const char *s);  /* equal to a C string */
bool view_ieq(struct view a, struct view b); /* ASCII case ignored */
bool view_iis(struct view a, const char *s);
bool view_starts(struct view v, struct view prefix);
bool view_istarts(struct view v, struct view prefix);
bool view_ends(struct view v, struct view suffix);
bool view_has(struct view v, char c);

/* Index of the first `c`, or v.len. */
size_t view_find(struct view v, char c);

/* Index of the first occurrence of `needle`, or v.len. */
size_t view_find_view(struct view v, struct view needle);

/* Clamped sub-views. */
struct view view_first(struct view v, size_t n);
struct view view_skip(struct view v, size_t n);

/* Without leading and trailing spaces and tabs. */
struct view view_trim(struct view v);

/*
 * Cuts the part before the first `sep` off the front of *rest into *ret and steps over
 * the separator.  False when *rest is used up.  "a,,b" gives "a", "", "b"; "" gives nothing.
 */
bool view_split(struct view *rest, char sep, struct view *ret);
