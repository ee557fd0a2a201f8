/*
 * codec/toml.h - TOML 1.0 read into a small tree.
 *
 * Everything lives in the caller's arena.  Every node knows its line, so that a program can name
 * the place of a key it does not know.  Size, nesting and number of values are bounded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct arena;
struct err;

#define TOML_MAX_BYTES	(1 << 20)
#define TOML_MAX_DEPTH	32
#define TOML_MAX_VALUES 8192

enum toml_kind {
	TOML_STRING,
	TOML_INT,
	TOML_FLOAT,
	TOML_BOOL,
	TOML_DATETIME,
	TOML_ARRAY,
	TOML_TABLE,
};

/* How a table or an array came to be, which decides what may still be added to it. */
enum toml_origin {
	TOML_IMPLIED, /* as the parent in a header */
	TOML_HEADER,  /* by its own header */
	TOML_DOTTED,  /* by a dotted key */
	TOML_INLINE,  /* written whole: closed */
};

struct toml {
	struct toml *next; /* sibling, in the order of the text */
	struct view key;   /* empty in arrays and for the root */
	unsigned line;	   /* where the key (or the element) stands, from 1 */
	enum toml_kind kind;
	enum toml_origin origin;
	struct view text; /* of a string (may hold NULs) or a datetime */
	int64_t integer;
	double real;
	bool boolean;
	struct toml *first, *last; /* members or elements */
	size_t len;		   /* how many of them */
};

/* -EINVAL with a sentence that begins with "line N:". */
osb_must_check int toml_parse(struct view text, struct arena *a, struct toml **ret, struct err *e);

const char *toml_kind_name(enum toml_kind kind); /* "a string", "a table", ... */

/* Member of a table; NULL when absent or when `table` is none. */
const struct toml *toml_get(const struct toml *table, const char *key);

/*
 * Field readers.  An absent field leaves *ret untouched and returns 0 (1 when it was there); a
 * wrong kind, a NUL in a string or a number out of range is -EINVAL with line and name.
 */
osb_must_check int toml_field_string(const struct toml *table, const char *key, struct view *ret,
				     struct err *e);
osb_must_check int toml_field_int(const struct toml *table, const char *key, int64_t min,
				  int64_t max, int64_t *ret, struct err *e);
osb_must_check int toml_field_bool(const struct toml *table, const char *key, bool *ret,
				   struct err *e);
osb_must_check int toml_field_array(const struct toml *table, const char *key,
				    const struct toml **ret, struct err *e);
osb_must_check int toml_field_table(const struct toml *table, const char *key,
				    const struct toml **ret, struct err *e);
