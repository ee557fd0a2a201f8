/*
 * TOML: every kind of value, what may not be defined twice, and errors that name their line.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "codec/toml.h"

static struct arena arena;

static int set_up(void **state)
{
	arena_init(&arena, 8 << 20);
	return 0;
}

static int tear_down(void **state)
{
	arena_done(&arena);
	return 0;
}

static const struct toml *parsed(const char *text)
{
	struct toml *t = NULL;
	struct err e = ERR_NONE;

	if (toml_parse(view_of(text), &arena, &t, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	return t;
}

static void reads_strings(void **state)
{
	static const struct {
		const char *in;
		struct view out;
	} cases[] = {
		{"\"\"", VIEW("")},
		{"\"a\\tb\\\"\\\\\\b\\n\\f\\r\"", VIEW("a\tb\"\\\b\n\f\r")},
		{"\"\\u00e9\\U0001F600\\u0000\"", VIEW("\xc3\xa9\xf0\x9f\x98\x80\0")},
		{"'C:\\x'", VIEW("C:\\x")},
		{"\"\"\"\na\nb\"\"\"", VIEW("a\nb")},
		{"\"\"\"a \\\n\n   b\"\"\"", VIEW("a b")},
		{"\"\"\"\"\"a\"\"\"\"\"", VIEW("\"\"a\"\"")},
		{"'''\r\na\\\r\n'b''''", VIEW("a\\\n'b'")},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(buf_done) struct buf b = BUF_INIT(4096);
		const struct toml *v;

		assert_int_equal(buf_printf(&b, "k = %s # c", cases[i].in), 0);
		v = toml_get(parsed(buf_str(&b)), "k");
		assert_non_null(v);
		assert_int_equal(v->kind, TOML_STRING);
		assert_true(view_eq(v->text, cases[i].out));
	}
}

static void reads_integers(void **state)
{
	static const struct {
		const char *in;
		int64_t out;
	} cases[] = {{"k=0", 0},
		     {"k=-0", 0},
		     {"k=+7", 7},
		     {"k=1_000", 1000},
		     {"k=0xDEAD_beef", 0xdeadbeef},
		     {"k=0o755", 0755},
		     {"k=0b101", 5},
		     {"k=0x00e0", 0xe0},
		     {"k=9223372036854775807", INT64_MAX},
		     {"k=-9223372036854775808", INT64_MIN}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct toml *v = toml_get(parsed(cases[i].in), "k");

		assert_int_equal(v->kind, TOML_INT);
		assert_true(v->integer == cases[i].out);
	}
}

static void reads_floats_booleans_and_dates(void **state)
{
	const struct toml *t = parsed("f=[0.5, -1e3, 1_0.2_5E+1, inf, -inf, nan]\nb=[true,false]\n"
				      "d=[1979-05-27, 07:32:00.5, 1979-05-27 07:32:00Z,"
				      " 2000-02-29T00:00:00.123-08:00]");
	const struct toml *v = toml_get(t, "f")->first;

	assert_true(v->kind == TOML_FLOAT && v->real == 0.5);
	assert_true(v->next->real == -1000.0);
	assert_true(v->next->next->real == 102.5);
	assert_true(isinf(v->next->next->next->real));
	assert_true(isnan(toml_get(t, "f")->last->real));
	assert_true(toml_get(t, "b")->first->boolean);
	assert_false(toml_get(t, "b")->last->boolean);
	for (v = toml_get(t, "d")->first; v; v = v->next)
		assert_int_equal(v->kind, TOML_DATETIME);
	assert_true(view_is(toml_get(t, "d")->first->next->next->text, "1979-05-27 07:32:00Z"));
}

static void builds_tables_from_headers_and_dotted_keys(void **state)
{
	const struct toml *t =
		parsed("a.b.c = 1\na.b.\"d e\" = 2\n[x.y]\nz = { p.q = 3, r = [ {} ] }\n"
		       "[x]\nw = 4\n[[l]]\nn = 1\n[[l]]\n[l.sub]\nm = 2\n");
	const struct toml *b = toml_get(toml_get(t, "a"), "b");
	const struct toml *l = toml_get(t, "l");

	assert_int_equal(b->len, 2);
	assert_int_equal(toml_get(b, "d e")->integer, 2);
	assert_int_equal(
		toml_get(toml_get(toml_get(toml_get(toml_get(t, "x"), "y"), "z"), "p"), "q")
			->integer,
		3);
	assert_int_equal(toml_get(toml_get(t, "x"), "w")->integer, 4);
	assert_int_equal(l->kind, TOML_ARRAY);
	assert_int_equal(l->len, 2);
	assert_int_equal(toml_get(l->first, "n")->integer, 1);
	assert_int_equal(toml_get(toml_get(l->last, "sub"), "m")->integer, 2);
	assert_null(toml_get(l, "n"));
	assert_null(toml_get(NULL, "n"));
}

static void knows_the_line_of_every_key(void **state)
{
	const struct toml *t =
		parsed("# one\na = 1\n\n[t]\nb = \"\"\"\nx\ny\"\"\"\nc = [\n 1,\n 2 ]\n"
		       "d = 0\n");
	const struct toml *table = toml_get(t, "t");

	assert_int_equal(toml_get(t, "a")->line, 2);
	assert_int_equal(table->line, 4);
	assert_int_equal(toml_get(table, "b")->line, 5);
	assert_int_equal(toml_get(table, "c")->line, 8);
	assert_int_equal(toml_get(table, "c")->last->line, 10);
	assert_int_equal(toml_get(table, "d")->line, 11);
}

static void refuses_with_the_line(void **state)
{
	static const struct {
		const char *in;
		unsigned line;
	} cases[] = {
		{"a", 1},
		{"a =", 1},
		{"= 1", 1},
		{"\na = 1 b", 2},
		{"a = 1\na = 2", 2},
		{"[a]\n[a]", 2},
		{"a.b = 1\n[a]", 2},
		{"a = 1\na.b = 2", 2},
		{"[a.b]\n[a]\nb.c = 1", 3},
		{"a = {b = 1}\n[a.c]", 2},
		{"a = {b.c = 1}\na.b.d = 2", 2},
		{"a = [{}]\n[[a]]", 2},
		{"[[a]]\n[a]", 2},
		{"[a]\n[[a]]", 2},
		{"a = [1\n2]", 2},
		{"a = {b = 1,}", 1},
		{"a = {b = 1\n}", 1},
		{"a = \"x\ny\"", 2},
		{"a = \"\"\"x\n\n", 3},
		{"a = \"\\q\"", 1},
		{"a = \"\\ud800\"", 1},
		{"a = \"\\U00110000\"", 1},
		{"a = \"\x01\"", 1},
		{"# \x7f", 1},
		{"a = 01", 1},
		{"a = 1__0", 1},
		{"a = _1", 1},
		{"a = 1.", 1},
		{"a = .5", 1},
		{"a = 1e", 1},
		{"a = 0x", 1},
		{"a = +0x1", 1},
		{"a = 9223372036854775808", 1},
		{"a = 1979-02-29", 1},
		{"a = 24:00:00", 1},
		{"a = True", 1},
		{"\"\"\"a\"\"\" = 1", 1},
		{"[a", 1},
		{"[[a]", 1},
		{"[]", 1},
		{"a = 1\r", 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct toml *t = NULL;
		struct err e = ERR_NONE;
		char line[16];

		if (toml_parse(view_of(cases[i].in), &arena, &t, &e) != -EINVAL)
			fail_msg("accepted: %s", cases[i].in);
		snprintf(line, sizeof(line), "line %u: ", cases[i].line);
		if (strncmp(e.msg, line, strlen(line)) != 0)
			fail_msg("%s: %s", cases[i].in, e.msg);
		assert_null(t);
	}
}

static void refuses_bytes_that_are_no_text(void **state)
{
	struct toml *t = NULL;
	struct err e = ERR_NONE;

	assert_int_equal(toml_parse(VIEW("a = \"\xff\""), &arena, &t, &e), -EINVAL);
	assert_int_equal(toml_parse(VIEW("a = 1\0"), &arena, &t, &e), -EINVAL);
	assert_int_equal(toml_parse(VIEW("a = \"\0\""), &arena, &t, &e), -EINVAL);
}

/* head, then n times body. */
static int parse_repeated(const char *head, const char *body, size_t n)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(4 << 20);
	struct toml *t = NULL;
	struct err e = ERR_NONE;

	assert_int_equal(buf_append_str(&b, head), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_append_str(&b, body), 0);
	return toml_parse(buf_view(&b), &arena, &t, &e);
}

static void bounds_size_depth_and_count(void **state)
{
	assert_int_equal(parse_repeated("#", "x", TOML_MAX_BYTES - 1), 0);
	assert_int_equal(parse_repeated("#", "x", TOML_MAX_BYTES), -EINVAL);
	assert_int_equal(parse_repeated("a=", "[", 100000), -EINVAL);
	assert_int_equal(parse_repeated("a=", "{a=", 10000), -EINVAL);
	assert_int_equal(parse_repeated("a", ".a", 10000), -EINVAL);
	assert_int_equal(parse_repeated("", "[[a]]\n", TOML_MAX_VALUES - 1), 0);
	assert_int_equal(parse_repeated("", "[[a]]\n", TOML_MAX_VALUES + 1), -EINVAL);
}

static void stops_at_the_ceiling_of_its_arena(void **state)
{
	struct arena small;
	struct toml *t = NULL;
	struct err e = ERR_NONE;

	arena_init(&small, 512);
	assert_int_equal(toml_parse(VIEW("a=[1,2,3,4,5,6,7,8,9,10,11,12]"), &small, &t, &e),
			 -E2BIG);
	assert_int_equal(e.code, -E2BIG);
	arena_done(&small);
}

static void reads_fields_of_the_right_kind(void **state)
{
	const struct toml *t = parsed("s='x'\nn=5\nb=true\na=[]\nt={}\nnul=\"\\u0000\""),
			  *sub = NULL;
	struct err e = ERR_NONE;
	struct view s = VIEW("before");
	int64_t n = 0;
	bool b = false;

	assert_int_equal(toml_field_string(t, "none", &s, &e), 0);
	assert_true(view_is(s, "before"));
	assert_int_equal(toml_field_string(t, "s", &s, &e), 1);
	assert_int_equal(toml_field_int(t, "n", 0, 9, &n, &e), 1);
	assert_int_equal(toml_field_bool(t, "b", &b, &e), 1);
	assert_int_equal(toml_field_array(t, "a", &sub, &e), 1);
	assert_int_equal(toml_field_table(t, "t", &sub, &e), 1);
	assert_true(view_is(s, "x") && n == 5 && b);
	assert_int_equal(toml_field_int(t, "n", 6, 9, &n, &e), -EINVAL);
	assert_string_equal(e.msg, "line 2: 'n' must lie between 6 and 9");
	assert_int_equal(toml_field_bool(t, "s", &b, &e), -EINVAL);
	assert_string_equal(e.msg, "line 1: 's' must be a boolean, not a string");
	assert_int_equal(toml_field_string(t, "nul", &s, &e), -EINVAL);
	assert_int_equal(toml_field_array(t, "t", &sub, &e), -EINVAL);
	assert_int_equal(toml_field_table(t, "a", &sub, &e), -EINVAL);
}

#define toml_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		toml_test(reads_strings),
		toml_test(reads_integers),
		toml_test(reads_floats_booleans_and_dates),
		toml_test(builds_tables_from_headers_and_dotted_keys),
		toml_test(knows_the_line_of_every_key),
		toml_test(refuses_with_the_line),
		toml_test(refuses_bytes_that_are_no_text),
		toml_test(bounds_size_depth_and_count),
		toml_test(stops_at_the_ceiling_of_its_arena),
		toml_test(reads_fields_of_the_right_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
