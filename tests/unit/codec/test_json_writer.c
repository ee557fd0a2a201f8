/*
 * JSON out: nesting and commas, and strings that stay valid whatever bytes they are made of.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"
#include "codec/json.h"
#include "codec/json_writer.h"

static void assert_text(struct buf *b, const char *expected)
{
	assert_string_equal(buf_str(b), expected);
}

static void escapes_any_bytes_to_valid_json(void **state)
{
	static const struct {
		struct view in;
		const char *out;
	} cases[] = {
		{VIEW(""), ""},
		{VIEW("plain"), "plain"},
		{VIEW("a\"b\\c/"), "a\\\"b\\\\c/"},
		{VIEW("\b\f\n\r\t"), "\\b\\f\\n\\r\\t"},
		{VIEW("\x00\x01\x1f\x7f"), "\\u0000\\u0001\\u001f\x7f"},
		{VIEW("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
		 "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
		{VIEW("\xff"), "\xef\xbf\xbd"},
		{VIEW("a\x80z"), "a\xef\xbf\xbdz"},
		{VIEW("\xe2\x82"), "\xef\xbf\xbd"},
		{VIEW("\xe2\x82z"), "\xef\xbf\xbdz"},
		{VIEW("\xf0\x9f\x98"), "\xef\xbf\xbd"},
		{VIEW("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{VIEW("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd"},
		{VIEW("\xf4\x90\x80\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{VIEW("\xf1\x80\xe1\x80\xc2z"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(buf_done) struct buf b = BUF_INIT(4096);

		assert_int_equal(json_escape(&b, cases[i].in), 0);
		assert_text(&b, cases[i].out);
	}
}

/* Every byte at every place of a long line: the fast path must not overlook one. */
static void finds_a_special_byte_at_every_place(void **state)
{
	static const char special[] = {'"', '\\', '\n', 0, '\x1f', '\xff', '\x80'};
	char line[70];

	for (size_t at = 0; at < sizeof(line); at++)
		for (size_t i = 0; i < sizeof(special); i++) {
			osb_cleanup(buf_done) struct buf b = BUF_INIT(4096);

			memset(line, 'x', sizeof(line));
			line[at] = special[i];
			assert_int_equal(json_escape(&b, view_mem(line, sizeof(line))), 0);
			assert_true(b.len > sizeof(line));
			assert_true(utf8_valid(buf_view(&b)));
			assert_null(memchr(buf_str(&b), '\n', b.len));
		}
}

static void leaves_nothing_behind_when_the_buffer_is_full(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(16);

	assert_int_equal(buf_append_str(&b, "kept"), 0);
	assert_int_equal(json_escape(&b, VIEW("0123456789\n\n\n")), -E2BIG);
	assert_text(&b, "kept");
}

static void writes_nested_values_with_commas(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(4096);
	struct json_writer w;

	json_writer_init(&w, &b);
	json_write_object(&w);
	json_put_int(&w, "a", -1);
	json_write_key(&w, "b");
	json_write_array(&w);
	json_write_null(&w);
	json_write_object(&w);
	json_write_object_end(&w);
	json_write_array(&w);
	json_write_array_end(&w);
	json_write_bool(&w, true);
	json_write_cstr(&w, "\"");
	json_write_array_end(&w);
	json_put_bool(&w, "c", false);
	json_put_cstr(&w, "d", "x");
	json_write_key_view(&w, VIEW("k\xff\n"));
	json_write_uint(&w, UINT64_MAX);
	json_put_string(&w, "e", VIEW("y\0z"));
	json_write_object_end(&w);
	assert_int_equal(json_writer_end(&w), 0);
	assert_text(&b, "{\"a\":-1,\"b\":[null,{},[],true,\"\\\"\"],\"c\":false,\"d\":\"x\","
			"\"k\xef\xbf\xbd\\n\":18446744073709551615,\"e\":\"y\\u0000z\"}");
}

static void writes_numbers_that_every_reader_takes(void **state)
{
	static const struct {
		double in;
		const char *out;
	} cases[] = {{0, "0"},
		     {-0.0, "0"},
		     {1, "1"},
		     {-2.5, "-2.5"},
		     {0.1, "0.1"},
		     {100, "100"},
		     {1e-9, "0"},
		     {-1e-9, "0"},
		     {3.1415926535, "3.141593"},
		     {1e300, "1.0000000000000001e+300"},
		     {NAN, "null"},
		     {INFINITY, "null"}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(buf_done) struct buf b = BUF_INIT(4096);
		struct json_writer w;

		json_writer_init(&w, &b);
		json_write_double(&w, cases[i].in);
		assert_int_equal(json_writer_end(&w), 0);
		assert_text(&b, cases[i].out);
	}
}

static void reports_a_full_buffer_at_the_end(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(20);
	struct json_writer w;

	json_writer_init(&w, &b);
	json_write_array(&w);
	for (int i = 0; i < 100; i++)
		json_write_cstr(&w, "text");
	json_write_array_end(&w);
	assert_int_equal(json_writer_end(&w), -E2BIG);
}

static void nests_as_deep_as_the_reader(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(4096);
	struct json_writer w;
	struct json *v = NULL;
	struct err e = ERR_NONE;

	json_writer_init(&w, &b);
	for (int i = 0; i < JSON_MAX_DEPTH; i++) {
		json_write_array(&w);
		json_write_int(&w, i);
	}
	for (int i = 0; i < JSON_MAX_DEPTH; i++)
		json_write_array_end(&w);
	assert_int_equal(json_writer_end(&w), 0);
	assert_int_equal(json_parse(buf_view(&b), 0, &v, &e), 0);
	json_free(v);
}

static void puts_text_on_one_line(void **state)
{
	struct buf out = BUF_INIT(1000);
	struct json_writer w;

	json_writer_init(&w, &out);
	json_write_array(&w);
	json_write_text(&w, VIEW("{\n \"a\":\r\n1\n}\n"));
	json_write_text(&w, VIEW("2"));
	json_write_array_end(&w);
	assert_int_equal(json_writer_end(&w), 0);
	assert_string_equal(buf_str(&out), "[{  \"a\":  1 } ,2]");
	buf_done(&out);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(escapes_any_bytes_to_valid_json),
		cmocka_unit_test(finds_a_special_byte_at_every_place),
		cmocka_unit_test(leaves_nothing_behind_when_the_buffer_is_full),
		cmocka_unit_test(writes_nested_values_with_commas),
		cmocka_unit_test(writes_numbers_that_every_reader_takes),
		cmocka_unit_test(reports_a_full_buffer_at_the_end),
		cmocka_unit_test(nests_as_deep_as_the_reader),
		cmocka_unit_test(puts_text_on_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
