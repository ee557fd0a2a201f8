/*
 * JSON as people read it.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "codec/json_indent.h"

static void every_level_is_indented(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"{}", "{}\n"},
		{"[ ]", "[]\n"},
		{"1", "1\n"},
		{"{\"a\":[],\"b\":{\"c\":[1,2]}}",
		 "{\n  \"a\": [],\n  \"b\": {\n    \"c\": [\n      1,\n      2\n    ]\n  }\n}\n"},
		{"[\"a:b,{}\\\"\",\"\\\\\"]", "[\n  \"a:b,{}\\\"\",\n  \"\\\\\"\n]\n"},
		{" {\n\t\"a\" : null }", "{\n  \"a\": null\n}\n"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(buf_done) struct buf out = BUF_INIT(4096);

		assert_int_equal(json_indent(view_of(cases[i].in), &out), 0);
		assert_string_equal(buf_str(&out), cases[i].out);
	}
}

static void what_is_cut_off_is_no_harm(void **state)
{
	static const char *const texts[] = {"", "\"", "\"\\", "{\"a", "}", "]]", "[", "{\"a\":"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		osb_cleanup(buf_done) struct buf out = BUF_INIT(4096);

		assert_int_equal(json_indent(view_of(texts[i]), &out), 0);
	}
}

static void the_ceiling_holds(void **state)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(8);

	assert_true(json_indent(VIEW("[1,2,3]"), &out) < 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_level_is_indented),
		cmocka_unit_test(what_is_cut_off_is_no_harm),
		cmocka_unit_test(the_ceiling_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
