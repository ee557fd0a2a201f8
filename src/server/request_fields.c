/*
 * server/request_fields.c - typed fields, with failures that say which field and what was expected.
 */
#include "server/request_fields.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "codec/label.h"
#include "server/failure.h"
#include "server/sandbox.h"

#define AUTH_MAX 65536

static int bad_field(const struct err *e, struct failure *f)
{
	return failure_set(f, 422, REQUEST_CODE, "%s", e->msg);
}

int request_string(const struct json *v, const char *key, struct view *ret, struct failure *f)
{
	struct err e = ERR_NONE;

	return json_field_string(v, key, ret, &e) < 0 ? bad_field(&e, f) : 0;
}

int request_bool(const struct json *v, const char *key, bool *ret, struct failure *f)
{
	struct err e = ERR_NONE;

	return json_field_bool(v, key, ret, &e) < 0 ? bad_field(&e, f) : 0;
}

int request_object(const struct json *v, const char *key, const struct json **ret,
		   struct failure *f)
{
	struct err e = ERR_NONE;

	return json_field_object(v, key, ret, &e) < 0 ? bad_field(&e, f) : 0;
}

int request_array(const struct json *v, const char *key, const struct json **ret, struct failure *f)
{
	struct err e = ERR_NONE;

	return json_field_array(v, key, ret, &e) < 0 ? bad_field(&e, f) : 0;
}

static bool has_nul(struct view text)
{
	return view_has(text, '\0');
}

static int read_pairs(const struct json *v, const char *key, bool nulls, struct pairs *ret,
		      struct failure *f)
{
	const struct json *object = NULL, *member;
	struct view name, value;
	void *it = NULL;

	if (request_object(v, key, &object, f) < 0)
		return -1;
	while (object && json_next(object, &it, &name, &member)) {
		if (nulls && json_kind(member) == JSON_NULL)
			continue;
		if (!json_str(member, &value))
			return failure_set(f, 422, REQUEST_CODE,
					   "%s: '"
					   "%.*s"
					   "' must be a string, not %s",
					   key, (int)MIN(name.len, (size_t)60), name.p,
					   json_kind_name(json_kind(member)));
		if (has_nul(name) || has_nul(value))
			return failure_set(f, 422, REQUEST_CODE, "%s must not hold NUL characters",
					   key);
		pairs_add(ret, name, value);
	}
	return 0;
}

int request_pairs(const struct json *v, const char *key, struct pairs *ret, struct failure *f)
{
	return read_pairs(v, key, false, ret, f);
}

int request_pairs_with_nulls(const struct json *v, const char *key, struct pairs *ret,
			     struct failure *f)
{
	return read_pairs(v, key, true, ret, f);
}

int request_words(const struct json *array, const char *field, size_t max, struct strv *ret,
		  struct failure *f)
{
	if (json_len(array) > max)
		return failure_set(f, 422, REQUEST_CODE, "%s has more than %zu words", field, max);
	for (size_t i = 0; i < json_len(array); i++) {
		const struct json *word = json_at(array, i);
		struct view text;

		if (!json_str(word, &text))
			return failure_set(f, 422, REQUEST_CODE, "%s[%zu] must be a string, not %s",
					   field, i, json_kind_name(json_kind(word)));
		if (has_nul(text))
			return failure_set(f, 422, REQUEST_CODE,
					   "%s[%zu] must not hold NUL characters", field, i);
		strv_add_view(ret, text);
	}
	return 0;
}

int request_auth(const struct json *v, char **ret_auth, struct failure *f)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(AUTH_MAX);
	struct view username = VIEW_NONE, password = VIEW_NONE;
	const struct json *auth = NULL;
	struct json_writer w;

	*ret_auth = NULL;
	if (request_object(v, "auth", &auth, f) < 0)
		return -1;
	if (!auth)
		return 0;
	if (request_string(auth, "username", &username, f) < 0 ||
	    request_string(auth, "password", &password, f) < 0)
		return -1;
	if (!username.p || !password.p)
		return failure_set(f, 422, REQUEST_CODE,
				   "image.auth: username and password must both be given");
	json_writer_init(&w, &out);
	json_write_object(&w);
	json_put_string(&w, "username", username);
	json_put_string(&w, "password", password);
	json_write_object_end(&w);
	if (json_writer_end(&w) < 0)
		return failure_set(f, 422, REQUEST_CODE, "image.auth is too long");
	*ret_auth = buf_take_str(&out);
	return 0;
}

int request_image(const struct json *image, struct view *ret_uri, char **ret_auth,
		  struct failure *f)
{
	struct view uri = VIEW_NONE;

	if (request_string(image, "uri", &uri, f) < 0)
		return -1;
	if (!uri.p)
		return failure_set(f, 422, REQUEST_CODE, "image.uri must be given");
	if (request_auth(image, ret_auth, f) < 0)
		return -1;
	*ret_uri = uri;
	return 0;
}

int request_label(struct view key, struct view value, const char *code, struct failure *f)
{
	if (label_key_reserved(key))
		return failure_set(f, 400, code,
				   "metadata: keys that begin with opensandbox.io/ are reserved");
	if (!label_key_valid(key))
		return failure_set(
			f, 400, code,
			"metadata: '%.*s' is no valid key; use letters, digits, '-', '_', '.' "
			"(at most 63) after an optional DNS prefix and '/'",
			(int)MIN(key.len, (size_t)60), key.p);
	if (!label_value_valid(value))
		return failure_set(
			f, 400, code,
			"metadata: the value of '%.*s' must be at most 63 letters, digits, "
			"'-', '_', '.'",
			(int)MIN(key.len, (size_t)60), key.p);
	return 0;
}
