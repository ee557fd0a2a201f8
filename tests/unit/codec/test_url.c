/*
 * test_url.c - request targets, percent-encoding, queries.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/arena.h"
#include "base/buf.h"
#include "codec/url.h"

static void splits_targets_into_path_and_query(void **state)
{
	static const struct {
		const char *text, *path, *query;
	} cases[] = {
		{"/", "/", ""},
		{"/a/b%20c?x=y&z", "/a/b%20c", "x=y&z"},
		{"/?", "/", ""},
		{"/a?b?c", "/a", "b?c"},
		{"//double//", "//double//", ""},
		{"/x[1]|{a}^`\\?q=[]", "/x[1]|{a}^`\\", "q=[]"},
		{"http://host", "/", ""},
		{"http://host?q", "/", "q"},
		{"HTTPS://[::1]:80/a?q", "/a", "q"},
		{"/http://x", "/http://x", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct url_target t;

		assert_true(url_target_parse(view_of(cases[i].text), &t));
		assert_true(view_is(t.path, cases[i].path));
		assert_true(view_is(t.query, cases[i].query));
	}
}

static void refuses_malformed_targets(void **state)
{
	static const struct view cases[] = {
		VIEW(""),
		VIEW("a"),
		VIEW("*"),
		VIEW("?q"),
		VIEW("/a b"),
		VIEW("/a#b"),
		VIEW("/\""),
		VIEW("/<"),
		VIEW("/\x7f"),
		VIEW("/\xc3\xa4"),
		VIEW("/\0"),
		VIEW("/\r\n"),
		VIEW("/%"),
		VIEW("/%4"),
		VIEW("/%4x"),
		VIEW("/?%zz"),
		VIEW("http://"),
		VIEW("http:///x"),
		VIEW("http://a@b/"),
		VIEW("ftp://host/"),
		VIEW("http:/x"),
		VIEW("host:80"),
		VIEW("http://a\\b/"),
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct url_target t;

		if (url_target_parse(cases[i], &t))
			fail_msg("accepted: " VIEW_FMT, VIEW_ARG(cases[i]));
	}
}

static void decodes_escapes(void **state)
{
	static const struct {
		const char *text;
		enum url_decode_mode mode;
		int result;
		const char *decoded;
	} cases[] = {
		{"", URL_PATH, 0, ""},
		{"a%2Fb%2f", URL_PATH, 0, "a/b/"},
		{"a+b", URL_PATH, 0, "a+b"},
		{"a+b%2B", URL_FORM, 0, "a b+"},
		{"%ff%E4", URL_PATH, 0, "\xff\xe4"},
		{"%", URL_PATH, -EINVAL, NULL},
		{"%1", URL_PATH, -EINVAL, NULL},
		{"%g0", URL_PATH, -EINVAL, NULL},
		{"a%00b", URL_PATH, -EINVAL, NULL},
	};
	struct arena a;

	arena_init(&a, 4096);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct view v;

		assert_int_equal(url_decode(&a, view_of(cases[i].text), cases[i].mode, &v),
				 cases[i].result);
		if (cases[i].decoded)
			assert_true(view_is(v, cases[i].decoded));
	}
	arena_done(&a);
}

static void respects_the_arena(void **state)
{
	static char large[10000];
	struct arena a;
	struct view v;

	memset(large, 'a', sizeof(large));
	arena_init(&a, 1000);
	assert_int_equal(url_decode(&a, view_mem(large, sizeof(large)), URL_PATH, &v), -E2BIG);
	arena_done(&a);
}

static void encodes_all_but_unreserved_characters(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(40);

	assert_int_equal(url_encode(&b, VIEW("aZ0-._~/ \xff\0"), true), 0);
	assert_true(view_is(buf_view(&b), "aZ0-._~/%20%FF%00"));
	buf_clear(&b);
	assert_int_equal(url_encode(&b, VIEW("a/b"), false), 0);
	assert_true(view_is(buf_view(&b), "a%2Fb"));
	assert_int_equal(url_encode(&b, VIEW("////////////////////"), false), -E2BIG);
	assert_true(view_is(buf_view(&b), "a%2Fb"));
}

static void walks_queries(void **state)
{
	struct view rest = VIEW("a=b&&c&=d&e%3D=f=g+h&"), name, value;
	static const char *const want[][2] = {{"a", "b"}, {"c", ""}, {"", "d"}, {"e=", "f=g h"}};
	struct arena a;
	size_t n = 0;
	int r;

	arena_init(&a, 4096);
	while ((r = url_query_next(&a, &rest, &name, &value)) > 0) {
		assert_true(n < ARRAY_LEN(want));
		assert_true(view_is(name, want[n][0]) && view_is(value, want[n][1]));
		n++;
	}
	assert_int_equal(r, 0);
	assert_int_equal(n, ARRAY_LEN(want));
	rest = VIEW("a=%zz");
	assert_int_equal(url_query_next(&a, &rest, &name, &value), -EINVAL);
	arena_done(&a);
}

static void finds_the_first_value_of_a_name(void **state)
{
	static const struct {
		const char *query, *name;
		int result;
		const char *value;
	} cases[] = {
		{"", "a", 0, NULL},
		{"a=1&a=2", "a", 1, "1"},
		{"aa=1&a=2", "a", 1, "2"},
		{"A=1", "a", 0, NULL},
		{"p%61th=/x%20y", "path", 1, "/x y"},
		{"a", "a", 1, ""},
		{"b=%zz&a=1", "a", 1, "1"},
		{"%zz=1&a=1", "a", -EINVAL, NULL},
		{"a=%00", "a", -EINVAL, NULL},
	};
	struct arena a;

	arena_init(&a, 4096);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct view v;
		int r = url_query_get(&a, view_of(cases[i].query), cases[i].name, &v);

		assert_int_equal(r, cases[i].result);
		if (r == 1)
			assert_true(view_is(v, cases[i].value));
	}
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splits_targets_into_path_and_query),
		cmocka_unit_test(refuses_malformed_targets),
		cmocka_unit_test(decodes_escapes),
		cmocka_unit_test(respects_the_arena),
		cmocka_unit_test(encodes_all_but_unreserved_characters),
		cmocka_unit_test(walks_queries),
		cmocka_unit_test(finds_the_first_value_of_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
