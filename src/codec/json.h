/*
 * codec/json.h - JSON values read from hostile text (the only file that knows jansson).
 *
 * Input is bounded in size, depth and member count; duplicate keys and invalid UTF-8 are refused.
 * Only the first value of the text counts when `JSON_FIRST_VALUE` is set; otherwise
 * anything but white space behind it is an error.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct err;
struct json;

enum json_kind { JSON_NULL, JSON_BOOL, JSON_INT, JSON_REAL, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

enum json_flags { JSON_FIRST_VALUE = 1 };

#define JSON_MAX_DEPTH	64
#define JSON_MAX_VALUES 262144 /* what one small text may cost in memory */

/* On success the caller owns *ret.  -EINVAL with a sentence that names the position. */
osb_must_check int json_parse(struct view text, enum json_flags flags, struct json **ret,
			      struct err *e);
void json_free(struct json *v); /* accepts NULL */
DEFINE_CLEANUP(struct json *, json_free)

/* From now on, in this process: values may be secrets, and their memory is wiped when freed. */
void json_wipe_freed(void);

enum json_kind json_kind(const struct json *v);
const char *json_kind_name(enum json_kind kind); /* "a string", "an object", ... for messages */

/* Member of an object; NULL when absent, when explicitly null, or when `v` is no object. */
const struct json *json_get(const struct json *v, const char *key);

/* Plain readers: false when the value has another kind (or is NULL). */
bool json_str(const struct json *v, struct view *ret); /* borrowed from v; may hold NULs */
bool json_int(const struct json *v, int64_t *ret);
bool json_number(const struct json *v, double *ret); /* integer or real */
bool json_bool(const struct json *v, bool *ret);

size_t json_len(const struct json *v); /* of an array or object; 0 otherwise */
const struct json *json_at(const struct json *array, size_t i);

/* Walks an object in the order of its text: `void *it = NULL; while (json_next(v, &it, &k, &m))`.
 */
bool json_next(const struct json *object, void **it, struct view *ret_key,
	       const struct json **ret_value);

/*
 * Field readers for request bodies.  An absent or null field leaves *ret untouched and returns 0
 * (1 when the field was there); a wrong kind is -EINVAL with a sentence that names the field, and
 * so is a `v` that is no object.  A NULL `v` has no fields.  Strings with NULs are refused.
 */
osb_must_check int json_field_string(const struct json *v, const char *key, struct view *ret,
				     struct err *e);
osb_must_check int json_field_int(const struct json *v, const char *key, int64_t min, int64_t max,
				  int64_t *ret, struct err *e);
osb_must_check int json_field_bool(const struct json *v, const char *key, bool *ret, struct err *e);
osb_must_check int json_field_object(const struct json *v, const char *key, const struct json **ret,
				     struct err *e);
osb_must_check int json_field_array(const struct json *v, const char *key, const struct json **ret,
				    struct err *e);
