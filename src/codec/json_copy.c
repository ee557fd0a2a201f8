/*
 * codec/json_copy.c - the reader's values through the writer; the reader bounds their depth.
 */
#include "codec/json_copy.h"

#include "codec/json.h"
#include "codec/json_writer.h"

static void write_object(struct json_writer *w, const struct json *v)
{
	const struct json *member;
	struct view key;
	void *it = NULL;

	json_write_object(w);
	while (json_next(v, &it, &key, &member)) {
		json_write_key_view(w, key);
		json_write_json(w, member);
	}
	json_write_object_end(w);
}

static void write_array(struct json_writer *w, const struct json *v)
{
	json_write_array(w);
	for (size_t i = 0; i < json_len(v); i++)
		json_write_json(w, json_at(v, i));
	json_write_array_end(w);
}

static void write_plain(struct json_writer *w, const struct json *v)
{
	struct view text;
	bool truth = false;
	double real = 0;
	int64_t n = 0;

	if (json_str(v, &text))
		json_write_string(w, text);
	else if (json_int(v, &n))
		json_write_int(w, n);
	else if (json_number(v, &real))
		json_write_double(w, real);
	else if (json_bool(v, &truth))
		json_write_bool(w, truth);
	else
		json_write_null(w);
}

void json_write_json(struct json_writer *w, const struct json *v)
{
	switch (v ? json_kind(v) : JSON_NULL) {
	case JSON_OBJECT:
		write_object(w, v);
		break;
	case JSON_ARRAY:
		write_array(w, v);
		break;
	default:
		write_plain(w, v);
	}
}
