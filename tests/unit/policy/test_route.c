/*
 * Routes to ports, and the signatures that open them.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "policy/route.h"

#define UUID "3f1b2c3d-0000-4000-8000-0123456789ab"

static struct route_key key_of(char id, const void *secret, size_t len)
{
	struct route_key k = {.id = id, .len = len};

	memcpy(k.secret, secret, len);
	return k;
}

static void times_are_written_in_base_36(void **state)
{
	static const struct {
		uint64_t n;
		const char *text;
	} cases[] = {{0, "0"},
		     {35, "z"},
		     {36, "10"},
		     {2000000000, "x2qxvk"},
		     {1893456000, "vbbc00"},
		     {UINT64_MAX, "3w5e11264sgsf"}};
	static const char *const wrong[] = {
		"", "00", "01", "A", "-1", "3w5e11264sgsg", "10000000000000"};
	uint64_t n;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[ROUTE_B36_MAX];

		route_b36_format(cases[i].n, text);
		assert_string_equal(text, cases[i].text);
		assert_true(route_b36_parse(view_of(text), &n));
		assert_true(n == cases[i].n);
	}
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_false(route_b36_parse(view_of(wrong[i]), &n));
}

static void signatures_are_those_of_other_implementations(void **state)
{
	struct route_key a = key_of('a', "secret-key-0123456789", 21);
	struct route_key k = key_of('k', "\1\2\3\4", 4);
	char text[ROUTE_SIGNATURE + 1];

	route_sign(&a, VIEW("my-sandbox"), 8080, 2000000000, text);
	assert_string_equal(text, "9ccd4934a");
	route_sign(&k, VIEW(UUID), 44772, 1893456000, text);
	assert_string_equal(text, "ec5b4ab2k");
}

static void labels_are_split_from_the_right(void **state)
{
	static const struct {
		const char *text, *id;
		unsigned port;
		bool is_signed;
	} cases[] = {
		{UUID "-8080", UUID, 8080, false},
		{"a-1", "a", 1, false},
		{"my-sandbox-8080-x2qxvk-9ccd4934a", "my-sandbox", 8080, true},
		/* What only looks signed is an id. */
		{"my-sandbox-x-x2qxvk-9ccd4934a", NULL, 0, false},
		{"x-80-zz-12345678", "x-80-zz", 0, false},
		{"a-0", NULL, 0, false},
		{"a-080", NULL, 0, false},
		{"a-65536", NULL, 0, false},
		{"-80", NULL, 0, false},
		{"80", NULL, 0, false},
		{"a b-80", NULL, 0, false},
		{"a.b-80", NULL, 0, false},
		{"", NULL, 0, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool ok = cases[i].id && cases[i].port;
		struct route_to r;

		assert_int_equal(route_parse_label(view_of(cases[i].text), &r), ok);
		if (!ok)
			continue;
		assert_true(view_is(r.id, cases[i].id));
		assert_int_equal(r.port, cases[i].port);
		assert_int_equal(r.is_signed, cases[i].is_signed);
	}
}

static void paths_keep_what_follows(void **state)
{
	static const struct {
		const char *target, *rest;
		bool may_be_signed, is_signed;
	} cases[] = {
		{"/a/80", "/", false, false},
		{"/a/80/", "/", false, false},
		{"/a/80/x/y?z=/1", "/x/y?z=/1", false, false},
		{"/a/80?q", "?q", false, false},
		{"/a/80/x2qxvk/9ccd4934a/x", "/x", true, true},
		{"/a/80/x2qxvk/9ccd4934a", "/", true, true},
		{"/a/80/x2qxvk/9ccd4934a/x", "/x2qxvk/9ccd4934a/x", false, false},
		{"/a/80/x2qxvk/other/x", "/x2qxvk/other/x", true, false},
		{"/a/x", NULL, false, false},
		{"/a", NULL, false, false},
		{"//80", NULL, false, false},
		{"a/80", NULL, false, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct view rest;
		struct route_to r;
		bool ok = route_parse_path(view_of(cases[i].target), cases[i].may_be_signed, &r,
					   &rest);

		assert_int_equal(ok, cases[i].rest != NULL);
		if (!ok)
			continue;
		assert_true(view_is(r.id, "a") && r.port == 80);
		assert_true(view_is(rest, cases[i].rest));
		assert_int_equal(r.is_signed, cases[i].is_signed);
	}
}

static void only_the_right_key_opens_in_time(void **state)
{
	struct route_key keys[] = {key_of('b', "other", 5),
				   key_of('a', "secret-key-0123456789", 21)};
	static const struct {
		const char *text;
		uint64_t now_s;
		enum route_verdict verdict;
	} cases[] = {
		{"my-sandbox-8080-x2qxvk-9ccd4934a", 2000000000, ROUTE_VALID},
		{"my-sandbox-8080-x2qxvk-9ccd4934a", 2000000001, ROUTE_EXPIRED},
		{"my-sandbox-8081-x2qxvk-9ccd4934a", 0, ROUTE_FORGED},
		{"my-sandbox-8080-x2qxvl-9ccd4934a", 0, ROUTE_FORGED},
		{"my-sandbox-8080-x2qxvk-9ccd4935a", 0, ROUTE_FORGED},
		{"my-sandbox-8080-x2qxvk-9ccd4934b", 0, ROUTE_FORGED},
		{"my-sandbox-8080-x2qxvk-9ccd4934c", 0, ROUTE_NO_KEY},
		{"my-sandbox-8080", 0, ROUTE_FORGED},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct route_to r;

		assert_true(route_parse_label(view_of(cases[i].text), &r));
		assert_int_equal(route_verify(keys, 2, &r, cases[i].now_s), cases[i].verdict);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_written_in_base_36),
		cmocka_unit_test(signatures_are_those_of_other_implementations),
		cmocka_unit_test(labels_are_split_from_the_right),
		cmocka_unit_test(paths_keep_what_follows),
		cmocka_unit_test(only_the_right_key_opens_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
