/*
 * "~" and variables in paths and values.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/expand.h"

static const char *lookup(void *arg, struct view name)
{
	if (view_is(name, "A"))
		return "alpha";
	if (view_is(name, "_b2"))
		return "$A";
	return view_is(name, "EMPTY") ? "" : NULL;
}

static void expands_paths(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"", ""},
		{"/x", "/x"},
		{"~", "/home/me"},
		{"~/a", "/home/me/a"},
		{"~you/a", "~you/a"},
		{"/~", "/~"},
		{"$A", "alpha"},
		{"${A}s", "alphas"},
		{"/x/$A/$A", "/x/alpha/alpha"},
		{"$_b2/", "$A/"},
		{"$", "$"},
		{"a$", "a$"},
		{"$1", "$1"},
		{"$$A", "$alpha"},
		{"${EMPTY}x$EMPTY", "x"},
		{"$A.txt", "alpha.txt"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct arena a;
		struct err e = ERR_NONE;
		struct view got;

		arena_init(&a, 4096);
		assert_int_equal(
			expand_path(&a, view_of(cases[i].in), "/home/me", lookup, NULL, &got, &e),
			0);
		assert_true(view_is(got, cases[i].out));
		arena_done(&a);
	}
}

static void refuses_paths_with_unknown_or_broken_variables(void **state)
{
	static const struct {
		const char *in, *why;
	} cases[] = {{"$NONE", "'NONE' is not defined"},
		     {"/x/${B}", "'B' is not defined"},
		     {"${A", "'${'"},
		     {"${}", "'${'"},
		     {"${A-x}", "'${'"},
		     {"$Ax", "'Ax'"}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct arena a;
		struct err e = ERR_NONE;
		struct view got = VIEW_NONE;

		arena_init(&a, 4096);
		assert_int_equal(expand_path(&a, view_of(cases[i].in), "/", lookup, NULL, &got, &e),
				 -EINVAL);
		assert_non_null(strstr(e.msg, cases[i].why));
		assert_null(got.p);
		arena_done(&a);
	}
}

static void needs_a_home_only_for_a_tilde(void **state)
{
	struct arena a;
	struct err e = ERR_NONE;
	struct view got;

	arena_init(&a, 4096);
	assert_int_equal(expand_path(&a, VIEW("/a"), NULL, lookup, NULL, &got, &e), 0);
	assert_int_equal(expand_path(&a, VIEW("~"), NULL, lookup, NULL, &got, &e), -EINVAL);
	arena_done(&a);
}

static void leaves_undefined_variables_of_values_empty(void **state)
{
	struct arena a;
	struct view got;

	arena_init(&a, 4096);
	assert_int_equal(expand_vars(&a, VIEW("~ $NONE${B}[$A]${A $"), lookup, NULL, &got), 0);
	assert_true(view_is(got, "~ [alpha]${A $"));
	arena_done(&a);
}

static void stops_at_the_ceiling(void **state)
{
	struct arena a;
	struct err e = ERR_NONE;
	struct view got;
	char text[400];

	for (size_t i = 0; i < sizeof(text); i += 2)
		memcpy(text + i, "$A", 2);
	arena_init(&a, 256);
	assert_int_equal(expand_vars(&a, view_mem(text, sizeof(text)), lookup, NULL, &got), -E2BIG);
	assert_int_equal(expand_path(&a, view_mem(text, sizeof(text)), "/", lookup, NULL, &got, &e),
			 -E2BIG);
	assert_int_equal(e.code, -E2BIG);
	arena_done(&a);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(expands_paths),
		cmocka_unit_test(refuses_paths_with_unknown_or_broken_variables),
		cmocka_unit_test(needs_a_home_only_for_a_tilde),
		cmocka_unit_test(leaves_undefined_variables_of_values_empty),
		cmocka_unit_test(stops_at_the_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
