/*
 * codec/multipart.h - multipart/form-data, incrementally: bytes in, part events out.
 *
 * Nothing is buffered but part headers (bounded) and a possible delimiter at the end of a
 * chunk; file bytes are passed through as views of the caller's input.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/macro.h"
#include "base/view.h"

struct err;

#define MULTIPART_BOUNDARY_MAX 70 /* RFC 2046, 5.1.1 */

/* The views are good until the part ends. */
struct multipart_part {
	struct view name;     /* of the form field; empty if absent */
	struct view filename; /* empty if absent */
	bool has_filename;
};

struct multipart_events {
	/* Each returns 0 to go on; anything negative stops the parser and is returned by feed. */
	int (*part)(void *arg, const struct multipart_part *part);
	int (*data)(void *arg, struct view bytes);
	int (*part_end)(void *arg);
};

struct multipart;

/* The boundary out of a Content-Type value; false if it is no multipart/form-data or malformed. */
bool multipart_boundary(struct view content_type, struct view *ret);

/* `boundary` is copied; NULL when it cannot be one.  `events` must live as long as the parser. */
struct multipart *multipart_new(struct view boundary, const struct multipart_events *events,
				void *arg);
void multipart_free(struct multipart *m); /* accepts NULL */
DEFINE_CLEANUP(struct multipart *, multipart_free)

/*
 * Consumes all of `bytes`.  -EINVAL with a sentence on malformed input, -E2BIG when a part's
 * headers are too long, or an event's own error (which fills `e` itself, if anyone).  A failure is
 * final.
 */
osb_must_check int multipart_feed(struct multipart *m, struct view bytes, struct err *e);

/* True once the closing delimiter was seen. */
bool multipart_complete(const struct multipart *m);
