/*
 * mcp/shape.c - see shape.h.
 */
#include "mcp/shape.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/view.h"
#include "codec/json.h"
#include "codec/json_writer.h"

static const char *const type_names[] = {
	[SHAPE_STRING] = "string", [SHAPE_TEXT] = "string",   [SHAPE_INT] = "integer",
	[SHAPE_NUMBER] = "number", [SHAPE_BOOL] = "boolean",  [SHAPE_STRINGS] = "array",
	[SHAPE_MAP] = "object",	   [SHAPE_OBJECT] = "object", [SHAPE_OBJECTS] = "array",
};

static void write_type(struct json_writer *w, const struct shape *s)
{
	if (s->kind == SHAPE_ANY)
		return;
	json_write_key(w, "type");
	if ((s->flags & SHAPE_NEEDED) || s->otherwise) {
		json_write_cstr(w, type_names[s->kind]);
		return;
	}
	json_write_array(w);
	json_write_cstr(w, type_names[s->kind]);
	json_write_cstr(w, "null");
	json_write_array_end(w);
}

static void write_members(struct json_writer *w, const struct shape *members, unsigned flags);

static void write_inside(struct json_writer *w, const struct shape *s)
{
	switch (s->kind) {
	case SHAPE_STRINGS:
	case SHAPE_MAP:
		json_write_key(w, s->kind == SHAPE_MAP ? "additionalProperties" : "items");
		json_write_object(w);
		json_put_cstr(w, "type", "string");
		json_write_object_end(w);
		break;
	case SHAPE_OBJECT:
		write_members(w, s->members, s->flags);
		break;
	case SHAPE_OBJECTS:
		json_write_key(w, "items");
		shape_write_schema(w, s->members, s->flags);
		break;
	default:
		break;
	}
}

static void write_member(struct json_writer *w, const struct shape *s)
{
	json_write_key(w, s->name);
	json_write_object(w);
	write_type(w, s);
	if (s->help)
		json_put_cstr(w, "description", s->help);
	if (s->otherwise) {
		json_write_key(w, "default");
		json_write_text(w, view_of(s->otherwise));
	}
	if (s->min || s->max) {
		json_put_int(w, "minimum", s->min);
		json_put_int(w, "maximum", s->max);
	}
	write_inside(w, s);
	json_write_object_end(w);
}

static void write_members(struct json_writer *w, const struct shape *members, unsigned flags)
{
	json_write_key(w, "properties");
	json_write_object(w);
	for (const struct shape *s = members; s->name; s++)
		write_member(w, s);
	json_write_object_end(w);
	json_write_key(w, "required");
	json_write_array(w);
	for (const struct shape *s = members; s->name; s++)
		if (s->flags & SHAPE_NEEDED)
			json_write_cstr(w, s->name);
	json_write_array_end(w);
	json_put_bool(w, "additionalProperties", (flags & SHAPE_OPEN) != 0);
}

void shape_write_schema(struct json_writer *w, const struct shape *members, unsigned flags)
{
	json_write_object(w);
	json_put_cstr(w, "type", "object");
	write_members(w, members, flags);
	json_write_object_end(w);
}

/* ---- checking ---- */

static int say(struct buf *why, const char *fmt, ...) osb_printf(2, 3);

static int say(struct buf *why, const char *fmt, ...)
{
	va_list ap;

	buf_clear(why);
	va_start(ap, fmt);
	/* A sentence that is too long for its room is not worth a failure of its own. */
	(void)!buf_vprintf(why, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static bool is_plain_string(const struct json *v)
{
	struct view text;

	return json_str(v, &text) && !memchr(text.p, '\0', text.len);
}

static int check_string(const struct shape *s, const struct json *v, struct buf *why)
{
	struct view text;

	if (!json_str(v, &text))
		return say(why, "%s must be a string, not %s", s->name,
			   json_kind_name(json_kind(v)));
	if (s->kind == SHAPE_STRING && !is_plain_string(v))
		return say(why, "%s must not contain NUL bytes", s->name);
	return 0;
}

static int check_number(const struct shape *s, const struct json *v, struct buf *why)
{
	double n;
	int64_t i;

	if (!json_number(v, &n) || (s->kind == SHAPE_INT && !json_int(v, &i)))
		return say(why, "%s must be %s, not %s", s->name,
			   s->kind == SHAPE_INT ? "an integer" : "a number",
			   json_kind_name(json_kind(v)));
	if ((s->min || s->max) && (n < (double)s->min || n > (double)s->max))
		return say(why, "%s must be from %" PRId64 " to %" PRId64, s->name, s->min, s->max);
	return 0;
}

static int check_strings(const struct shape *s, const struct json *v, struct buf *why)
{
	const struct json *item;
	struct view key;
	void *it = NULL;

	if (s->kind == SHAPE_STRINGS) {
		if (json_kind(v) != JSON_ARRAY)
			return say(why, "%s must be an array of strings", s->name);
		for (size_t i = 0; i < json_len(v); i++)
			if (!is_plain_string(json_at(v, i)))
				return say(why, "every item of %s must be a string", s->name);
		return 0;
	}
	if (json_kind(v) != JSON_OBJECT)
		return say(why, "%s must be an object whose values are strings", s->name);
	while (json_next(v, &it, &key, &item))
		if (!is_plain_string(item) || memchr(key.p, '\0', key.len))
			return say(why, "every value of %s must be a string", s->name);
	return 0;
}

static int check_objects(const struct shape *s, const struct json *v, struct buf *why)
{
	int r = 0;

	if (json_kind(v) != JSON_ARRAY)
		return say(why, "%s must be an array of objects", s->name);
	for (size_t i = 0; r == 0 && i < json_len(v); i++)
		r = shape_check(s->members, s->flags, json_at(v, i), why);
	return r;
}

static int check_member(const struct shape *s, const struct json *v, struct buf *why)
{
	switch (s->kind) {
	case SHAPE_STRING:
	case SHAPE_TEXT:
		return check_string(s, v, why);
	case SHAPE_INT:
	case SHAPE_NUMBER:
		return check_number(s, v, why);
	case SHAPE_BOOL:
		return json_kind(v) == JSON_BOOL ? 0
						 : say(why, "%s must be true or false", s->name);
	case SHAPE_STRINGS:
	case SHAPE_MAP:
		return check_strings(s, v, why);
	case SHAPE_OBJECT:
		return shape_check(s->members, s->flags, v, why);
	case SHAPE_OBJECTS:
		return check_objects(s, v, why);
	case SHAPE_ANY:
		break;
	}
	return 0;
}

static int check_known(const struct shape *members, const struct json *v, struct buf *why)
{
	const struct json *value;
	struct view key;
	void *it = NULL;

	while (json_next(v, &it, &key, &value)) {
		const struct shape *s = members;

		while (s->name && !view_is(key, s->name))
			s++;
		if (s->name)
			continue;
		(void)say(why, "there is no argument '" VIEW_FMT "'; there are:",
			  VIEW_ARG(view_first(key, 64)));
		for (s = members; s->name; s++)
			if (buf_printf(why, "%s %s", s == members ? "" : ",", s->name) < 0)
				break;
		return -EINVAL;
	}
	return 0;
}

int shape_check(const struct shape *members, unsigned flags, const struct json *v, struct buf *why)
{
	int r = 0;

	if (v && json_kind(v) != JSON_OBJECT)
		return say(why, "expected an object, not %s", json_kind_name(json_kind(v)));
	if (v && !(flags & SHAPE_OPEN))
		r = check_known(members, v, why);
	for (const struct shape *s = members; r == 0 && s->name; s++) {
		const struct json *value = v ? json_get(v, s->name) : NULL;

		if (value)
			r = check_member(s, value, why);
		else if (s->flags & SHAPE_NEEDED)
			r = say(why, "%s is missing", s->name);
	}
	return r;
}
