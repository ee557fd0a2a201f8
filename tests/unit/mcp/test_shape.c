/*
 * Shapes: the schema that is written from a table, and what is refused with which words.
 */
#include "mcp/shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/json.h"
#include "codec/json_writer.h"

static const struct shape inner[] = {
	{"path", SHAPE_STRING, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{NULL, SHAPE_ANY, 0, NULL, NULL, 0, 0, NULL},
};

static const struct shape outer[] = {
	{"name", SHAPE_STRING, SHAPE_NEEDED, NULL, "Its name.", 0, 0, NULL},
	{"count", SHAPE_INT, 0, "1", NULL, 1, 9, NULL},
	{"text", SHAPE_TEXT, 0, NULL, NULL, 0, 0, NULL},
	{"flag", SHAPE_BOOL, 0, "false", NULL, 0, 0, NULL},
	{"words", SHAPE_STRINGS, 0, NULL, NULL, 0, 0, NULL},
	{"map", SHAPE_MAP, 0, NULL, NULL, 0, 0, NULL},
	{"items", SHAPE_OBJECTS, 0, NULL, NULL, 0, 0, inner},
	{"open", SHAPE_OBJECT, SHAPE_OPEN, NULL, NULL, 0, 0, inner},
	{NULL, SHAPE_ANY, 0, NULL, NULL, 0, 0, NULL},
};

static void arguments_are_checked(void **state)
{
	static const struct {
		const char *text, *why; /* NULL = fine */
	} cases[] = {
		{"{\"name\":\"x\"}", NULL},
		{"{\"name\":\"x\",\"count\":null,\"map\":null}", NULL},
		{"{\"name\":\"x\",\"count\":9,\"flag\":true,\"words\":[],\"map\":{\"a\":\"b\"}}",
		 NULL},
		{"{\"name\":\"x\",\"text\":\"\\u0000\"}", NULL},
		{"{\"name\":\"x\",\"open\":{\"path\":\"p\",\"more\":1}}", NULL},
		{"{}", "name is missing"},
		{"[]", "expected an object, not an array"},
		{"{\"name\":null}", "name is missing"},
		{"{\"name\":1}", "name must be a string"},
		{"{\"name\":\"a\\u0000\"}", "NUL"},
		{"{\"name\":\"x\",\"nam\":1}",
		 "there is no argument 'nam'; there are: name, count"},
		{"{\"name\":\"x\",\"count\":10}", "count must be from 1 to 9"},
		{"{\"name\":\"x\",\"count\":1.5}", "count must be an integer"},
		{"{\"name\":\"x\",\"flag\":0}", "flag must be true or false"},
		{"{\"name\":\"x\",\"words\":\"w\"}", "words must be an array"},
		{"{\"name\":\"x\",\"words\":[1]}", "every item of words"},
		{"{\"name\":\"x\",\"map\":[]}", "map must be an object"},
		{"{\"name\":\"x\",\"map\":{\"a\":1}}", "every value of map"},
		{"{\"name\":\"x\",\"items\":{}}", "items must be an array"},
		{"{\"name\":\"x\",\"items\":[{}]}", "path is missing"},
		{"{\"name\":\"x\",\"items\":[1]}", "expected an object"},
		{"{\"name\":\"x\",\"items\":[{\"path\":\"p\",\"q\":1}]}", "no argument 'q'"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(buf_done) struct buf why = BUF_INIT(960);
		osb_cleanup(json_freep) struct json *v = NULL;
		struct err e = ERR_NONE;

		assert_int_equal(json_parse(view_of(cases[i].text), 0, &v, &e), 0);
		assert_int_equal(shape_check(outer, 0, v, &why), cases[i].why ? -EINVAL : 0);
		if (cases[i].why)
			assert_non_null(strstr(buf_str(&why), cases[i].why));
	}
}

static void schemas_are_written(void **state)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(4096);
	static const struct shape two[] = {
		{"a", SHAPE_INT, SHAPE_NEEDED, NULL, "Help.", 1, 2, NULL},
		{"b", SHAPE_STRINGS, 0, NULL, NULL, 0, 0, NULL},
		{NULL, SHAPE_ANY, 0, NULL, NULL, 0, 0, NULL},
	};
	struct json_writer w;

	json_writer_init(&w, &out);
	shape_write_schema(&w, two, 0);
	assert_int_equal(json_writer_end(&w), 0);
	assert_string_equal(
		buf_str(&out),
		"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"description\":"
		"\"Help.\",\"minimum\":1,\"maximum\":2},\"b\":{\"type\":[\"array\",\"null\"],"
		"\"items\":{\"type\":\"string\"}}},\"required\":[\"a\"],\"additionalProperties\":"
		"false}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_are_checked),
		cmocka_unit_test(schemas_are_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
