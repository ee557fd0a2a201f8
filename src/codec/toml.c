/*
 * codec/toml.c - the structure of TOML: headers, keys, arrays, tables, and what may not be
 * defined twice.
 */
#include "codec/toml.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/utf8.h"
#include "codec/toml_scalar.h"

struct parser {
	struct toml_reader r;
	size_t values;
};

static int read_value(struct parser *p, struct toml *ret, unsigned depth);

/* The code of the failure that was just recorded. */
static int failed(const struct parser *p)
{
	assert(p->r.e->code < 0);
	return p->r.e->code;
}

static char peek(const struct parser *p)
{
	return p->r.rest.len > 0 ? p->r.rest.p[0] : '\0';
}

static bool skip_char(struct parser *p, char c)
{
	if (p->r.rest.len == 0 || p->r.rest.p[0] != c)
		return false;
	p->r.rest = view_skip(p->r.rest, 1);
	return true;
}

static void skip_blanks(struct parser *p)
{
	while (skip_char(p, ' ') || skip_char(p, '\t'))
		;
}

static int skip_comment(struct parser *p)
{
	if (!skip_char(p, '#'))
		return 0;
	while (p->r.rest.len > 0 && !view_starts(p->r.rest, VIEW("\n")) &&
	       !view_starts(p->r.rest, VIEW("\r\n"))) {
		unsigned char c = (unsigned char)p->r.rest.p[0];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return toml_error(&p->r, "a comment holds a control character");
		p->r.rest = view_skip(p->r.rest, 1);
	}
	return 0;
}

/* White space, comments and line ends, as they may stand between the elements of an array. */
static int skip_space(struct parser *p)
{
	do {
		skip_blanks(p);
		if (skip_comment(p) < 0)
			return failed(p);
	} while (toml_skip_newline(&p->r));
	return 0;
}

/* Nothing but a comment may follow on this line. */
static int end_line(struct parser *p)
{
	skip_blanks(p);
	if (skip_comment(p) < 0)
		return failed(p);
	if (p->r.rest.len > 0 && !toml_skip_newline(&p->r))
		return toml_error(&p->r, "something follows where the line should end");
	return 0;
}

/* A new child at the end of a table or an array; NULL after a failure. */
static struct toml *add_child(struct parser *p, struct toml *parent, struct view key)
{
	struct toml *child;

	if (++p->values > TOML_MAX_VALUES) {
		toml_error(&p->r, "there are more than %d values", TOML_MAX_VALUES);
		return NULL;
	}
	child = arena_alloc(p->r.arena, sizeof(*child));
	if (!child) {
		err_set(p->r.e, -E2BIG, "line %u: the text is too large", p->r.line);
		return NULL;
	}
	*child = (struct toml){.key = key, .line = p->r.line};
	if (parent->last)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
	parent->len++;
	return child;
}

static struct toml *find(const struct toml *table, struct view key)
{
	for (struct toml *t = table->first; t; t = t->next)
		if (view_eq(t->key, key))
			return t;
	return NULL;
}

static int defined_twice(struct parser *p, const struct toml *old)
{
	return toml_error(&p->r, "'" VIEW_FMT "' is already defined in line %u",
			  VIEW_ARG(view_first(old->key, 60)), old->line);
}

static bool is_bare_key_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

/* One part of a dotted key, with the blanks around it. */
static int read_key(struct parser *p, struct view *ret)
{
	size_t n = 0;

	skip_blanks(p);
	if (peek(p) == '"' || peek(p) == '\'') {
		if (toml_read_string(&p->r, TOML_ONE_LINE, ret) < 0)
			return failed(p);
	} else {
		while (n < p->r.rest.len && is_bare_key_char(p->r.rest.p[n]))
			n++;
		if (n == 0)
			return toml_error(&p->r, "a key is missing or holds a character that "
						 "must be quoted");
		*ret = view_first(p->r.rest, n);
		p->r.rest = view_skip(p->r.rest, n);
	}
	skip_blanks(p);
	return 0;
}

/* The table that `key` names in `in`, as a parent: made if absent. */
static int enter_table(struct parser *p, struct toml *in, struct view key, enum toml_origin origin,
		       struct toml **ret)
{
	struct toml *t = find(in, key);

	if (!t) {
		t = add_child(p, in, key);
		if (!t)
			return failed(p);
		t->kind = TOML_TABLE;
		t->origin = origin;
	}
	/* In a header, an array of tables stands for its last element. */
	if (t->kind == TOML_ARRAY && t->origin == TOML_HEADER && origin == TOML_IMPLIED)
		t = t->last;
	if (t->kind != TOML_TABLE || t->origin == TOML_INLINE ||
	    (origin == TOML_DOTTED && t->origin == TOML_HEADER))
		return defined_twice(p, t);
	*ret = t;
	return 0;
}

/* Reads "a.b.c": enters all but the last part, which is left to the caller. */
static int read_path(struct parser *p, struct toml *in, enum toml_origin origin,
		     struct toml **ret_table, struct view *ret_key)
{
	for (unsigned depth = 0; depth < TOML_MAX_DEPTH; depth++) {
		if (read_key(p, ret_key) < 0)
			return failed(p);
		if (!skip_char(p, '.')) {
			*ret_table = in;
			return 0;
		}
		if (enter_table(p, in, *ret_key, origin, &in) < 0)
			return failed(p);
	}
	return toml_error(&p->r, "a key has more than %d parts", TOML_MAX_DEPTH);
}

/* key = value */
static int read_pair(struct parser *p, struct toml *table, unsigned depth)
{
	struct toml *old, *value;
	struct view key;

	if (read_path(p, table, TOML_DOTTED, &table, &key) < 0)
		return failed(p);
	old = find(table, key);
	if (old)
		return defined_twice(p, old);
	if (!skip_char(p, '='))
		return toml_error(&p->r, "'=' is missing behind '" VIEW_FMT "'",
				  VIEW_ARG(view_first(key, 60)));
	value = add_child(p, table, key);
	if (!value)
		return failed(p);
	skip_blanks(p);
	return read_value(p, value, depth);
}

static int read_array(struct parser *p, struct toml *ret, unsigned depth)
{
	struct toml *element;

	ret->kind = TOML_ARRAY;
	ret->origin = TOML_INLINE;
	for (;;) {
		if (skip_space(p) < 0)
			return failed(p);
		if (skip_char(p, ']'))
			return 0;
		element = add_child(p, ret, VIEW_NONE);
		if (!element || read_value(p, element, depth) < 0 || skip_space(p) < 0)
			return failed(p);
		if (!skip_char(p, ',') && peek(p) != ']')
			return toml_error(&p->r, "',' or ']' is missing in an array");
	}
}

/* Its dotted keys are closed with it: nothing may be added from outside. */
static void close_tables(struct toml *table)
{
	table->origin = TOML_INLINE;
	for (struct toml *t = table->first; t; t = t->next)
		if (t->kind == TOML_TABLE && t->origin == TOML_DOTTED)
			close_tables(t);
}

static int read_inline_table(struct parser *p, struct toml *ret, unsigned depth)
{
	ret->kind = TOML_TABLE;
	ret->origin = TOML_DOTTED;
	skip_blanks(p);
	if (skip_char(p, '}')) {
		ret->origin = TOML_INLINE;
		return 0;
	}
	for (;;) {
		if (read_pair(p, ret, depth) < 0)
			return failed(p);
		skip_blanks(p);
		if (skip_char(p, '}'))
			break;
		if (!skip_char(p, ','))
			return toml_error(&p->r, "',' or '}' is missing in an inline table");
	}
	close_tables(ret);
	return 0;
}

static int read_value(struct parser *p, struct toml *ret, unsigned depth)
{
	if (depth >= TOML_MAX_DEPTH)
		return toml_error(&p->r, "values are nested deeper than %d levels", TOML_MAX_DEPTH);
	if (skip_char(p, '['))
		return read_array(p, ret, depth + 1);
	if (skip_char(p, '{'))
		return read_inline_table(p, ret, depth + 1);
	if (peek(p) == '"' || peek(p) == '\'') {
		ret->kind = TOML_STRING;
		return toml_read_string(&p->r, TOML_MULTI_LINE, &ret->text);
	}
	return toml_read_bare(&p->r, ret);
}

/* [a.b]: the table must not have been defined before. */
static int open_table(struct parser *p, struct toml *in, struct view key, struct toml **ret)
{
	struct toml *t = find(in, key);

	if (!t) {
		t = add_child(p, in, key);
		if (!t)
			return failed(p);
		t->kind = TOML_TABLE;
	} else if (t->kind != TOML_TABLE || t->origin != TOML_IMPLIED) {
		return defined_twice(p, t);
	}
	t->origin = TOML_HEADER;
	t->line = p->r.line;
	*ret = t;
	return 0;
}

/* [[a.b]]: one more element. */
static int open_element(struct parser *p, struct toml *in, struct view key, struct toml **ret)
{
	struct toml *t = find(in, key);

	if (!t) {
		t = add_child(p, in, key);
		if (!t)
			return failed(p);
		t->kind = TOML_ARRAY;
		t->origin = TOML_HEADER;
	} else if (t->kind != TOML_ARRAY || t->origin != TOML_HEADER) {
		return defined_twice(p, t);
	}
	t = add_child(p, t, VIEW_NONE);
	if (!t)
		return failed(p);
	t->kind = TOML_TABLE;
	t->origin = TOML_HEADER;
	*ret = t;
	return 0;
}

/* A header, behind its first '['. */
static int read_header(struct parser *p, struct toml *root, struct toml **ret)
{
	bool element = skip_char(p, '[');
	struct toml *table;
	struct view key;

	if (read_path(p, root, TOML_IMPLIED, &table, &key) < 0)
		return failed(p);
	if (!skip_char(p, ']') || (element && !skip_char(p, ']')))
		return toml_error(&p->r, "']' is missing behind a table's name");
	return element ? open_element(p, table, key, ret) : open_table(p, table, key, ret);
}

static int read_document(struct parser *p, struct toml *root)
{
	struct toml *table = root;

	for (;;) {
		if (skip_space(p) < 0)
			return failed(p);
		if (p->r.rest.len == 0)
			return 0;
		if (skip_char(p, '[')) {
			if (read_header(p, root, &table) < 0)
				return failed(p);
		} else if (read_pair(p, table, 0) < 0) {
			return failed(p);
		}
		if (end_line(p) < 0)
			return failed(p);
	}
}

int toml_parse(struct view text, struct arena *a, struct toml **ret, struct err *e)
{
	struct parser p = {.r = {.rest = text, .line = 1, .arena = a, .e = e}};
	struct toml *root;

	if (text.len > TOML_MAX_BYTES)
		return err_set(e, -EINVAL, "the text is larger than %d bytes", TOML_MAX_BYTES);
	if (!utf8_valid(text))
		return err_set(e, -EINVAL, "the text is not UTF-8");
	root = arena_alloc(a, sizeof(*root));
	if (!root)
		return err_set(e, -E2BIG, "the text is too large");
	*root = (struct toml){.kind = TOML_TABLE, .origin = TOML_HEADER, .line = 1};
	if (read_document(&p, root) < 0)
		return e->code;
	*ret = root;
	return 0;
}

const char *toml_kind_name(enum toml_kind kind)
{
	static const char *const names[] = {
		[TOML_STRING] = "a string", [TOML_INT] = "an integer",	[TOML_FLOAT] = "a float",
		[TOML_BOOL] = "a boolean",  [TOML_DATETIME] = "a date", [TOML_ARRAY] = "an array",
		[TOML_TABLE] = "a table"};

	return names[kind];
}

const struct toml *toml_get(const struct toml *table, const char *key)
{
	return table && table->kind == TOML_TABLE ? find(table, view_of(key)) : NULL;
}

/* 1 = *ret is the field and has the kind, 0 = there is none. */
static int field(const struct toml *table, const char *key, enum toml_kind kind,
		 const struct toml **ret, struct err *e)
{
	const struct toml *t = toml_get(table, key);

	if (!t)
		return 0;
	if (t->kind != kind)
		return err_set(e, -EINVAL, "line %u: '%s' must be %s, not %s", t->line, key,
			       toml_kind_name(kind), toml_kind_name(t->kind));
	*ret = t;
	return 1;
}

int toml_field_string(const struct toml *table, const char *key, struct view *ret, struct err *e)
{
	const struct toml *t;
	int r = field(table, key, TOML_STRING, &t, e);

	if (r <= 0)
		return r;
	if (view_has(t->text, '\0'))
		return err_set(e, -EINVAL, "line %u: '%s' must not contain a NUL character",
			       t->line, key);
	*ret = t->text;
	return 1;
}

int toml_field_int(const struct toml *table, const char *key, int64_t min, int64_t max,
		   int64_t *ret, struct err *e)
{
	const struct toml *t;
	int r = field(table, key, TOML_INT, &t, e);

	if (r <= 0)
		return r;
	if (t->integer < min || t->integer > max)
		return err_set(e, -EINVAL,
			       "line %u: '%s' must lie between %" PRId64 " and %" PRId64, t->line,
			       key, min, max);
	*ret = t->integer;
	return 1;
}

int toml_field_bool(const struct toml *table, const char *key, bool *ret, struct err *e)
{
	const struct toml *t;
	int r = field(table, key, TOML_BOOL, &t, e);

	if (r <= 0)
		return r;
	*ret = t->boolean;
	return 1;
}

int toml_field_array(const struct toml *table, const char *key, const struct toml **ret,
		     struct err *e)
{
	return field(table, key, TOML_ARRAY, ret, e);
}

int toml_field_table(const struct toml *table, const char *key, const struct toml **ret,
		     struct err *e)
{
	return field(table, key, TOML_TABLE, ret, e);
}
