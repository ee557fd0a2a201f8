/*
 * JSON bodies: what is accepted can be walked within its limits, and written out again as text
 * that reads the same.
 */
#include <assert.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
	json_write_json(&w, v);
	assert(json_writer_end(&w) == 0);
	assert(json_parse(buf_view(&first), 0, &again, &e) == 0);
	json_writer_init(&w, &second);
	json_write_json(&w, again);
	assert(json_writer_end(&w) == 0);
	assert(view_eq(buf_view(&first), buf_view(&second)));
	return 0;
}
