/*
 * "KEY=VALUE" files as people write them.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/dotenv.h"

static void reads_one_assignment_per_line(void **state)
{
	static const struct {
		const char *line, *name, *value;
		int literal;
	} cases[] = {
		{"A=1", "A", "1", 0},
		{"  A = 1  \r", "A", "1", 0},
		{"export A=1", "A", "1", 0},
		{"export\tA=1", "A", "1", 0},
		{"exported=1", "exported", "1", 0},
		{"A=", "A", "", 0},
		{"A=b=c", "A", "b=c", 0},
		{"A=x # y", "A", "x # y", 0},
		{"A='$B' # c", "A", "$B", 1},
		{"A=\"$B\"", "A", "$B", 0},
		{"A=''", "A", "", 1},
		{"A='it", "A", "'it", 0},
		{"A='a'b", "A", "'a'b", 0},
		{"A='a'#b", "A", "'a'#b", 0},
		{"A='", "A", "'", 0},
		{"a.b-c=1", "a.b-c", "1", 0},
		{"A=\xff", "A", "\xff", 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct view rest = view_of(cases[i].line), name, value;
		int literal = -1;

		assert_int_equal(dotenv_next(&rest, &name, &value, &literal), 1);
		assert_true(view_is(name, cases[i].name));
		assert_true(view_is(value, cases[i].value));
		assert_int_equal(literal, cases[i].literal);
		assert_int_equal(dotenv_next(&rest, &name, &value, &literal), 0);
	}
}

static void skips_what_is_no_assignment(void **state)
{
	static const struct view cases[] = {
		VIEW(""),      VIEW("\n\n"),  VIEW("# A=1"), VIEW("  # A=1"),	VIEW("word"),
		VIEW("=1"),    VIEW(" = "),   VIEW("a b=1"), VIEW("export =1"), VIEW("A=a\0b"),
		VIEW("A\0=1"), VIEW("'A'=1"), VIEW("$A=1"),  VIEW("export"),
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct view rest = cases[i], name, value;
		int literal;

		assert_int_equal(dotenv_next(&rest, &name, &value, &literal), 0);
	}
}

static void goes_on_behind_lines_it_skips(void **state)
{
	struct view rest = VIEW("# first\nA=1\nnonsense\n\nB=2"), name, value;
	int literal;

	assert_int_equal(dotenv_next(&rest, &name, &value, &literal), 1);
	assert_true(view_is(name, "A"));
	assert_int_equal(dotenv_next(&rest, &name, &value, &literal), 1);
	assert_true(view_is(name, "B"));
	assert_true(view_is(value, "2"));
	assert_int_equal(dotenv_next(&rest, &name, &value, &literal), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_one_assignment_per_line),
		cmocka_unit_test(skips_what_is_no_assignment),
		cmocka_unit_test(goes_on_behind_lines_it_skips),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
