/*
 * JSON bodies: what is accepted can be walked within its limits, and written out again as text
 * that reads the same.
 */
#include <assert.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/json.h"
#include "codec/json_writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_value(struct json_writer *w, const struct json *v)
{
	const struct json *member;
	struct view text;
	void *it = NULL;
	int64_t n;
	double d;
	bool b;

	switch (json_kind(v)) {
	case JSON_OBJECT:
		json_write_object(w);
		while (json_next(v, &it, &text, &member)) {
			json_write_key_view(w, text);
			write_value(w, member);
		}
		json_write_object_end(w);
		break;
	case JSON_ARRAY:
		json_write_array(w);
		for (size_t i = 0; i < json_len(v); i++)
			write_value(w, json_at(v, i));
		json_write_array_end(w);
		break;
	case JSON_STRING:
		assert(json_str(v, &text));
		json_write_string(w, text);
		break;
	case JSON_INT:
		assert(json_int(v, &n));
		json_write_int(w, n);
		break;
	case JSON_REAL:
		assert(json_number(v, &d));
		json_write_double(w, d);
		break;
	case JSON_BOOL:
		assert(json_bool(v, &b));
		json_write_bool(w, b);
		break;
	case JSON_NULL:
		json_write_null(w);
		break;
	}
}

static void check_fields(const struct json *v)
{
	static const char *const keys[] = {"command", "argv", "cwd", "envs", "timeout", "path"};
	const struct json *sub;
	struct view text;
	struct err e;
	int64_t n;
	bool b;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (json_field_string(v, keys[i], &text, &e) == 1)
			assert(!view_has(text, '\0'));
		if (json_field_int(v, keys[i], -5, 5, &n, &e) == 1)
			assert(n >= -5 && n <= 5);
		(void)!json_field_bool(v, keys[i], &b, &e);
		(void)!json_field_object(v, keys[i], &sub, &e);
		(void)!json_field_array(v, keys[i], &sub, &e);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	osb_cleanup(buf_done) struct buf first = BUF_INIT(16 << 20), second = BUF_INIT(16 << 20);
	osb_cleanup(json_freep) struct json *v = NULL, *again = NULL;
	enum json_flags flags = size > 0 && data[0] == ' ' ? JSON_FIRST_VALUE : 0;
	struct json_writer w;
	struct err e = ERR_NONE;

	if (json_parse(view_mem(data, size), flags, &v, &e) < 0) {
		assert(e.code < 0 && e.msg[0] && !v);
		return 0;
	}
	check_fields(v);
	json_writer_init(&w, &first);
	write_value(&w, v);
	assert(json_writer_end(&w) == 0);
	assert(json_parse(buf_view(&first), 0, &again, &e) == 0);
	json_writer_init(&w, &second);
	write_value(&w, again);
	assert(json_writer_end(&w) == 0);
	assert(view_eq(buf_view(&first), buf_view(&second)));
	return 0;
}
