/*
 * mcp/shape.h - what goes into a tool and what comes out of it, as tables: schemas are written from
 * them, and arguments are checked against them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

struct buf;
struct json;
struct json_writer;

enum shape_kind {
	SHAPE_STRING,
	SHAPE_TEXT, /* the same, and NULs may be in it */
	SHAPE_INT,
	SHAPE_NUMBER,
	SHAPE_BOOL,
	SHAPE_STRINGS, /* an array of them */
	SHAPE_MAP,     /* names and strings */
	SHAPE_OBJECT,  /* with members */
	SHAPE_OBJECTS, /* an array of them */
	SHAPE_ANY,
};

enum shape_flags {
	SHAPE_NEEDED = 1,
	SHAPE_OPEN = 2, /* objects: members that are not in the table are allowed */
};

/* One member; the last of a table has no name. */
struct shape {
	const char *name;
	enum shape_kind kind;
	unsigned flags;
	const char *otherwise; /* the default as JSON, or NULL; then null is allowed too */
	const char *help;
	int64_t min, max;	     /* of numbers; both 0 = any */
	const struct shape *members; /* of objects */
};

/* {"type":"object",...}. */
void shape_write_schema(struct json_writer *w, const struct shape *members, unsigned flags);

/* 0, or -EINVAL with a sentence in `why`.  `v` NULL is an empty object. */
osb_must_check int shape_check(const struct shape *members, unsigned flags, const struct json *v,
			       struct buf *why);
