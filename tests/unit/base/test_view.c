/*
 * Views: comparing, searching, cutting; an empty view without memory is as good as any.
 */
#include "base/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void compares_with_and_without_case(void **state)
{
	assert_true(view_eq(VIEW_NONE, VIEW("")));
	assert_true(view_is(VIEW("a"), "a"));
	assert_false(view_is(VIEW("a\0"), "a"));
	assert_true(view_is(VIEW_NONE, NULL));
	assert_true(view_iis(VIEW("Content-Length"), "cONTENT-lENGTH"));
	assert_false(view_iis(VIEW("@"), "`"));
	assert_false(view_iis(VIEW("["), "{"));
	assert_false(view_ieq(VIEW("ab"), VIEW("a")));
	assert_true(view_istarts(VIEW("Bearer x"), VIEW("bearer ")));
	assert_false(view_starts(VIEW("be"), VIEW("bearer")));
	assert_true(view_starts(VIEW("be"), VIEW_NONE));
	assert_true(view_ends(VIEW("a.txt"), VIEW(".txt")));
	assert_false(view_ends(VIEW("txt"), VIEW(".txt")));
	assert_true(view_ends(VIEW_NONE, VIEW_NONE));
}

static void searches(void **state)
{
	assert_int_equal(view_find(VIEW("abcb"), 'b'), 1);
	assert_int_equal(view_find(VIEW("abcb"), 'x'), 4);
	assert_int_equal(view_find(VIEW_NONE, 'x'), 0);
	assert_int_equal(view_find_view(VIEW("aabab"), VIEW("ab")), 1);
	assert_int_equal(view_find_view(VIEW("aab"), VIEW("abc")), 3);
	assert_int_equal(view_find_view(VIEW("aab"), VIEW_NONE), 0);
	assert_int_equal(view_find_view(VIEW_NONE, VIEW("a")), 0);
	assert_true(view_has(VIEW("a\0b"), '\0'));
	assert_false(view_has(VIEW("ab"), '\0'));
}

static void cuts_are_clamped(void **state)
{
	assert_true(view_is(view_first(VIEW("abc"), 9), "abc"));
	assert_true(view_is(view_first(VIEW("abc"), 2), "ab"));
	assert_true(view_is(view_skip(VIEW("abc"), 2), "c"));
	assert_true(view_is(view_skip(VIEW("abc"), SIZE_MAX), ""));
	assert_int_equal(view_skip(VIEW_NONE, 1).len, 0);
	assert_true(view_is(view_trim(VIEW(" \t a b \t")), "a b"));
	assert_true(view_is(view_trim(VIEW(" \t ")), ""));
	assert_true(view_is(view_trim(VIEW("\na\n")), "\na\n"));
	assert_int_equal(view_trim(VIEW_NONE).len, 0);
}

static void splits_at_every_separator(void **state)
{
	static const struct {
		const char *in, *parts[4];
	} cases[] = {
		{"", {NULL}},	   {"a", {"a"}},  {",", {""}}, {"a,,b", {"a", "", "b"}},
		{",a", {"", "a"}}, {"a,", {"a"}},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct view rest = view_of(cases[i].in), part;
		size_t n = 0;

		while (view_split(&rest, ',', &part)) {
			assert_non_null(cases[i].parts[n]);
			assert_true(view_is(part, cases[i].parts[n++]));
		}
		assert_null(cases[i].parts[n]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compares_with_and_without_case),
		cmocka_unit_test(searches),
		cmocka_unit_test(cuts_are_clamped),
		cmocka_unit_test(splits_at_every_separator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
