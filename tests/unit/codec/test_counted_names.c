/*
 * Lists of names with numbers: what is in them, and what is none.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "codec/counted_names.h"

static void names_come_with_their_numbers(void **state)
{
	static const struct {
		const char *name;
		uint64_t n;
	} expected[] = {{"python", 2}, {"bash", 1}, {"c++", 0}};
	struct view rest = VIEW("python:2, bash ,c++: 0"), name;
	struct err e = ERR_NONE;
	uint64_t n;

	for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
		assert_int_equal(counted_names_next(&rest, &name, &n, &e), 1);
		assert_true(view_is(name, expected[i].name));
		assert_int_equal(n, expected[i].n);
	}
	assert_int_equal(counted_names_next(&rest, &name, &n, &e), 0);
}

static void sums_and_shapes_are_checked(void **state)
{
	static const char *const good[] = {"", "a", "a,", "a:3", "a:1,b:2"};
	static const char *const bad[] = {
		",",   "a:",	  ":1",	   "A:1",   "a:-1",
		"a:4", "a:2,b:2", "a b:1", "a:1:1", "a:99999999999999999999"};
	struct err e = ERR_NONE;

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_int_equal(counted_names_check(view_of(good[i]), 3, &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		e = ERR_NONE;
		assert_true(counted_names_check(view_of(bad[i]), 3, &e) < 0);
		assert_true(e.msg[0] != '\0');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_come_with_their_numbers),
		cmocka_unit_test(sums_and_shapes_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
