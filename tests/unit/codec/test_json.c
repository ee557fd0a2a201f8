/*
 * JSON in: what is accepted, what is refused and with which sentence.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/json.h"

static struct json *parsed(const char *text)
{
	struct json *v = NULL;
	struct err e = ERR_NONE;

	if (json_parse(view_of(text), 0, &v, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	return v;
}

static void refuses_what_is_not_strict_json(void **state)
{
	static const char *const cases[] = {
		"",
		" ",
		"{",
		"[1,]",
		"{\"a\":1,}",
		"nul",
		"01",
		"+1",
		".5",
		"1.",
		"'a'",
		"{a:1}",
		"[1] x",
		"\"\\x\"",
		"\"\\ud800\"",
		"\"\xff\"",
		"\"\xc0\x80\"",
		"\"a\nb\"",
		"{\"a\":1,\"a\":2}",
		"9223372036854775808",
		"-9223372036854775809",
		"1e999",
		"{\"a\\u0000b\":1}",
		"/* c */ 1",
		"\xef\xbb\xbf{}",
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct json *v = NULL;
		struct err e = ERR_NONE;

		if (json_parse(view_of(cases[i]), 0, &v, &e) != -EINVAL)
			fail_msg("accepted: %s", cases[i]);
		assert_null(v);
		assert_int_equal(e.code, -EINVAL);
		assert_true(strlen(e.msg) > 10);
		assert_null(strchr(e.msg, '\n'));
	}
}

static void names_the_place_of_an_error(void **state)
{
	struct json *v = NULL;
	struct err e = ERR_NONE;

	assert_int_equal(json_parse(view_of("{\n \"a\": x}"), 0, &v, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "line 2"));
}

static void reads_only_the_first_value_when_asked(void **state)
{
	struct json *v = NULL;
	struct err e = ERR_NONE;

	assert_int_equal(json_parse(view_of("{\"a\":1} [[[ rest"), JSON_FIRST_VALUE, &v, &e), 0);
	assert_int_equal(json_len(v), 1);
	json_free(v);
}

/* `depth` arrays in each other, with as many ends. */
static int parse_nested(size_t depth, struct err *e)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct json *v = NULL;
	int r;

	for (size_t i = 0; i < depth; i++)
		assert_int_equal(buf_append_char(&b, '['), 0);
	for (size_t i = 0; i < depth; i++)
		assert_int_equal(buf_append_char(&b, ']'), 0);
	r = json_parse(buf_view(&b), 0, &v, e);
	json_free(v);
	return r;
}

static void bounds_nesting(void **state)
{
	struct err e = ERR_NONE;

	assert_int_equal(parse_nested(JSON_MAX_DEPTH, &e), 0);
	assert_int_equal(parse_nested(JSON_MAX_DEPTH + 1, &e), -EINVAL);
	assert_int_equal(parse_nested(200000, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "64 levels"));
}

static void counts_no_brackets_inside_strings(void **state)
{
	char text[300] = "\"";
	struct json *v;

	memset(text + 1, '[', 200);
	strcpy(text + 201, "\\\"{{{\"");
	v = parsed(text);
	assert_int_equal(json_kind(v), JSON_STRING);
	json_free(v);
}

static void bounds_the_number_of_values(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(4 << 20);
	struct json *v = NULL;
	struct err e = ERR_NONE;

	assert_int_equal(buf_append_str(&b, "[0"), 0);
	for (size_t i = 0; i < JSON_MAX_VALUES; i++)
		assert_int_equal(buf_append_str(&b, ",0"), 0);
	assert_int_equal(buf_append_str(&b, "]"), 0);
	assert_int_equal(json_parse(buf_view(&b), 0, &v, &e), -EINVAL);
	assert_null(v);
}

static void knows_every_kind(void **state)
{
	static const struct {
		const char *text;
		enum json_kind kind;
	} cases[] = {{"null", JSON_NULL},   {"true", JSON_BOOL},   {"false", JSON_BOOL},
		     {"-7", JSON_INT},	    {"1.5", JSON_REAL},	   {"1e3", JSON_REAL},
		     {"\"\"", JSON_STRING}, {" [ ] ", JSON_ARRAY}, {"{}", JSON_OBJECT}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct json *v = parsed(cases[i].text);

		assert_int_equal(json_kind(v), cases[i].kind);
		assert_non_null(json_kind_name(json_kind(v)));
		json_free(v);
	}
}

static void reads_plain_values(void **state)
{
	struct json *v = parsed("[\"a\\u0000\\u00e9\",9223372036854775807,0.5,true,null]");
	struct view text;
	int64_t n;
	double d;
	bool b;

	assert_true(json_str(json_at(v, 0), &text));
	assert_int_equal(text.len, 4);
	assert_memory_equal(text.p, "a\0\xc3\xa9", 4);
	assert_true(json_int(json_at(v, 1), &n));
	assert_true(n == INT64_MAX);
	assert_false(json_int(json_at(v, 2), &n));
	assert_true(json_number(json_at(v, 2), &d) && d == 0.5);
	assert_true(json_number(json_at(v, 1), &d));
	assert_true(json_bool(json_at(v, 3), &b) && b);
	assert_false(json_bool(json_at(v, 4), &b));
	assert_null(json_at(v, 5));
	assert_false(json_str(NULL, &text));
	assert_int_equal(json_len(v), 5);
	json_free(v);
}

static void walks_members_in_the_order_of_the_text(void **state)
{
	struct json *v = parsed("{\"z\":1,\"a\":2,\"m\":3,\"b\":4}");
	const struct json *member;
	struct view key;
	void *it = NULL;
	char order[8] = "";
	size_t n = 0;

	while (json_next(v, &it, &key, &member))
		order[n++] = key.p[0];
	assert_string_equal(order, "zamb");
	it = NULL;
	assert_false(json_next(member, &it, &key, &member));
	json_free(v);
}

static void takes_null_members_as_absent(void **state)
{
	struct json *v = parsed("{\"a\":null}");

	assert_null(json_get(v, "a"));
	assert_null(json_get(v, "b"));
	assert_null(json_get(NULL, "b"));
	json_free(v);
}

static void reads_fields_of_the_right_kind(void **state)
{
	struct json *v = parsed("{\"s\":\"x\",\"n\":5,\"b\":true,\"o\":{},\"a\":[1],\"nil\":null}");
	const struct json *sub = NULL;
	struct err e = ERR_NONE;
	struct view s = VIEW("before");
	int64_t n = -1;
	bool b = false;

	assert_int_equal(json_field_string(v, "nil", &s, &e), 0);
	assert_int_equal(json_field_string(NULL, "s", &s, &e), 0);
	assert_true(view_is(s, "before"));
	assert_int_equal(json_field_string(v, "s", &s, &e), 1);
	assert_true(view_is(s, "x"));
	assert_int_equal(json_field_int(v, "n", 5, 5, &n, &e), 1);
	assert_int_equal(n, 5);
	assert_int_equal(json_field_bool(v, "b", &b, &e), 1);
	assert_true(b);
	assert_int_equal(json_field_object(v, "o", &sub, &e), 1);
	assert_int_equal(json_field_array(v, "a", &sub, &e), 1);
	assert_int_equal(json_len(sub), 1);
	assert_int_equal(e.code, 0);
	json_free(v);
}

static void refuses_fields_of_the_wrong_kind_by_name(void **state)
{
	struct json *v = parsed("{\"name\":5,\"n\":70,\"nul\":\"a\\u0000b\",\"f\":1.0}");
	struct json *list = parsed("[]");
	const struct json *sub = NULL;
	struct err e = ERR_NONE;
	struct view s = VIEW_NONE;
	int64_t n = -1;
	bool b = false;

	assert_int_equal(json_field_string(v, "name", &s, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "'name' must be a string"));
	assert_int_equal(json_field_string(v, "nul", &s, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "NUL"));
	assert_int_equal(json_field_int(v, "n", 1, 60, &n, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "60"));
	assert_int_equal(json_field_int(v, "f", 0, 9, &n, &e), -EINVAL);
	assert_int_equal(json_field_bool(v, "n", &b, &e), -EINVAL);
	assert_int_equal(json_field_object(v, "n", &sub, &e), -EINVAL);
	assert_int_equal(json_field_array(v, "n", &sub, &e), -EINVAL);
	assert_int_equal(json_field_string(list, "name", &s, &e), -EINVAL);
	assert_null(s.p);
	assert_null(sub);
	assert_int_equal(n, -1);
	json_free(list);
	json_free(v);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_is_not_strict_json),
		cmocka_unit_test(names_the_place_of_an_error),
		cmocka_unit_test(reads_only_the_first_value_when_asked),
		cmocka_unit_test(bounds_nesting),
		cmocka_unit_test(counts_no_brackets_inside_strings),
		cmocka_unit_test(bounds_the_number_of_values),
		cmocka_unit_test(knows_every_kind),
		cmocka_unit_test(reads_plain_values),
		cmocka_unit_test(walks_members_in_the_order_of_the_text),
		cmocka_unit_test(takes_null_members_as_absent),
		cmocka_unit_test(reads_fields_of_the_right_kind),
		cmocka_unit_test(refuses_fields_of_the_wrong_kind_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
