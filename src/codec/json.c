/*
 * codec/json.c - JSON read with jansson, behind our own names and our own limits.
 *
 * A `struct json` is a json_t in disguise: nothing is copied or wrapped.  Depth and number of
 * values are checked on the text before jansson allocates anything for it.
 */
#include "codec/json.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* jansson's enumerators bear our names with other values: here they get a name of their own. */
#define JSON_OBJECT JANSSON_OBJECT
#define JSON_ARRAY  JANSSON_ARRAY
#define JSON_STRING JANSSON_STRING
#define JSON_REAL   JANSSON_REAL
#define JSON_NULL   JANSSON_NULL
#include <jansson.h>
#undef JSON_OBJECT
#undef JSON_ARRAY
#undef JSON_STRING
#undef JSON_REAL
#undef JSON_NULL

static const json_t *inside(const struct json *v)
{
	return (const json_t *)v;
}

/* The end of the string whose opening quote is at `i`: the index behind its closing quote. */
static size_t skip_string(struct view text, size_t i)
{
	for (i++; i < text.len && text.p[i] != '"'; i++)
		if (text.p[i] == '\\')
			i++;
	return i + 1;
}

/* Counts what the first value of the text would cost, without judging its grammar. */
static int check_limits(struct view text, struct err *e)
{
	size_t depth = 0, values = 1, i = 0;

	while (i < text.len) {
		char c = text.p[i];

		if (c == '"') {
			i = skip_string(text, i);
			continue;
		}
		i++;
		if (c == '{' || c == '[') {
			if (++depth > JSON_MAX_DEPTH)
				return err_set(e, -EINVAL, "JSON is nested deeper than %d levels",
					       JSON_MAX_DEPTH);
		} else if (c == '}' || c == ']') {
			if (depth <= 1)
				break;
			depth--;
		} else if (c == ',' && ++values > JSON_MAX_VALUES) {
			return err_set(e, -EINVAL, "JSON holds more than %d values",
				       JSON_MAX_VALUES);
		}
	}
	return 0;
}

static void wiping_free(void *p)
{
	if (p)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

void json_wipe_freed(void)
{
	json_set_alloc_funcs(malloc, wiping_free);
}

/* jansson quotes the text near the error, which may hold anything: keep the sentence one line. */
static int syntax_error(const json_error_t *at, struct err *e)
{
	char why[JSON_ERROR_TEXT_LENGTH];
	size_t n = 0;

	for (; at->text[n] && n < sizeof(why) - 1; n++)
		why[n] = (unsigned char)at->text[n] < 0x20 ? ' ' : at->text[n];
	why[n] = '\0';
	return err_set(e, -EINVAL, "invalid JSON at line %d, column %d: %s", at->line, at->column,
		       why);
}

int json_parse(struct view text, enum json_flags flags, struct json **ret, struct err *e)
{
	size_t how = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL;
	json_error_t at;
	json_t *v;

	if (text.len == 0)
		return err_set(e, -EINVAL, "invalid JSON: the text is empty");
	if (check_limits(text, e) < 0)
		return e->code;
	if (flags & JSON_FIRST_VALUE)
		how |= JSON_DISABLE_EOF_CHECK;
	v = json_loadb(text.p, text.len, how, &at);
	if (!v)
		return syntax_error(&at, e);
	*ret = (struct json *)v;
	return 0;
}

void json_free(struct json *v)
{
	json_decref((json_t *)v);
}

enum json_kind json_kind(const struct json *v)
{
	switch (json_typeof(inside(v))) {
	case JANSSON_OBJECT:
		return JSON_OBJECT;
	case JANSSON_ARRAY:
		return JSON_ARRAY;
	case JANSSON_STRING:
		return JSON_STRING;
	case JSON_INTEGER:
		return JSON_INT;
	case JANSSON_REAL:
		return JSON_REAL;
	case JSON_TRUE:
	case JSON_FALSE:
		return JSON_BOOL;
	case JANSSON_NULL:
		break;
	}
	return JSON_NULL;
}

const char *json_kind_name(enum json_kind kind)
{
	static const char *const names[] = {
		[JSON_NULL] = "null",	    [JSON_BOOL] = "a boolean",	[JSON_INT] = "an integer",
		[JSON_REAL] = "a fraction", [JSON_STRING] = "a string", [JSON_ARRAY] = "an array",
		[JSON_OBJECT] = "an object"};

	return names[kind];
}

static bool is(const struct json *v, enum json_kind kind)
{
	return v && json_kind(v) == kind;
}

const struct json *json_get(const struct json *v, const char *key)
{
	const struct json *member;

	if (!is(v, JSON_OBJECT))
		return NULL;
	member = (const struct json *)json_object_get(inside(v), key);
	return is(member, JSON_NULL) ? NULL : member;
}

bool json_str(const struct json *v, struct view *ret)
{
	if (!is(v, JSON_STRING))
		return false;
	*ret = view_mem(json_string_value(inside(v)), json_string_length(inside(v)));
	return true;
}

bool json_int(const struct json *v, int64_t *ret)
{
	if (!is(v, JSON_INT))
		return false;
	*ret = json_integer_value(inside(v));
	return true;
}

bool json_number(const struct json *v, double *ret)
{
	if (!is(v, JSON_INT) && !is(v, JSON_REAL))
		return false;
	*ret = json_number_value(inside(v));
	return true;
}

bool json_bool(const struct json *v, bool *ret)
{
	if (!is(v, JSON_BOOL))
		return false;
	*ret = json_typeof(inside(v)) == JSON_TRUE;
	return true;
}

size_t json_len(const struct json *v)
{
	if (is(v, JSON_ARRAY))
		return json_array_size(inside(v));
	return is(v, JSON_OBJECT) ? json_object_size(inside(v)) : 0;
}

const struct json *json_at(const struct json *array, size_t i)
{
	if (!is(array, JSON_ARRAY))
		return NULL;
	return (const struct json *)json_array_get(inside(array), i);
}

/* *it holds the current place, not the next one: the walk ends without starting again. */
bool json_next(const struct json *object, void **it, struct view *ret_key,
	       const struct json **ret_value)
{
	json_t *o = (json_t *)(uintptr_t)object;
	void *at;

	if (!is(object, JSON_OBJECT))
		return false;
	at = *it ? json_object_iter_next(o, *it) : json_object_iter(o);
	if (!at)
		return false;
	*it = at;
	*ret_key = view_of(json_object_iter_key(at));
	*ret_value = (const struct json *)json_object_iter_value(at);
	return true;
}

/* 1 = *ret is the field and has the kind, 0 = there is none. */
static int field(const struct json *v, const char *key, enum json_kind kind,
		 const struct json **ret, struct err *e)
{
	const struct json *member;

	if (v && !is(v, JSON_OBJECT))
		return err_set(e, -EINVAL, "'%s' is looked for in %s, which must be an object", key,
			       json_kind_name(json_kind(v)));
	member = json_get(v, key);
	if (!member)
		return 0;
	if (json_kind(member) != kind)
		return err_set(e, -EINVAL, "'%s' must be %s, not %s", key, json_kind_name(kind),
			       json_kind_name(json_kind(member)));
	*ret = member;
	return 1;
}

int json_field_string(const struct json *v, const char *key, struct view *ret, struct err *e)
{
	const struct json *member;
	struct view text;
	int r = field(v, key, JSON_STRING, &member, e);

	if (r <= 0)
		return r;
	if (!json_str(member, &text) || view_has(text, '\0'))
		return err_set(e, -EINVAL, "'%s' must not contain a NUL character", key);
	*ret = text;
	return 1;
}

int json_field_int(const struct json *v, const char *key, int64_t min, int64_t max, int64_t *ret,
		   struct err *e)
{
	const struct json *member;
	int64_t n;
	int r = field(v, key, JSON_INT, &member, e);

	if (r <= 0)
		return r;
	n = json_integer_value(inside(member));
	if (n < min || n > max)
		return err_set(e, -EINVAL, "'%s' must lie between %" PRId64 " and %" PRId64, key,
			       min, max);
	*ret = n;
	return 1;
}

int json_field_bool(const struct json *v, const char *key, bool *ret, struct err *e)
{
	const struct json *member;
	int r = field(v, key, JSON_BOOL, &member, e);

	if (r <= 0)
		return r;
	return json_bool(member, ret);
}

int json_field_object(const struct json *v, const char *key, const struct json **ret, struct err *e)
{
	return field(v, key, JSON_OBJECT, ret, e);
}

int json_field_array(const struct json *v, const char *key, const struct json **ret, struct err *e)
{
	return field(v, key, JSON_ARRAY, ret, e);
}
