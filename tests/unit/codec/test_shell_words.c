/*
 * test_shell_words.c - command lines to words.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "base/strv.h"
#include "codec/shell_words.h"

static void splits_as_a_shell_does(void **state)
{
	static const struct {
		const char *text;
		const char *words[5];
	} cases[] = {
		{"tail -f /dev/null", {"tail", "-f", "/dev/null"}},
		{"  a\t b\n", {"a", "b"}},
		{"", {NULL}},
		{"''", {""}},
		{"sh -c 'echo \"x y\"'", {"sh", "-c", "echo \"x y\""}},
		{"a\\ b c", {"a b", "c"}},
		{"\"a\\\"b\\n\" x", {"a\"b\\n", "x"}},
		{"a'b c'd\"e f\"", {"ab cde f"}},
		{"$HOME `x`", {"$HOME", "`x`"}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct strv words = STRV_INIT;
		size_t n = 0;

		assert_int_equal(shell_words_split(view_of(cases[i].text), &words), 0);
		while (cases[i].words[n])
			n++;
		assert_int_equal(words.len, n);
		for (size_t j = 0; j < n; j++)
			assert_string_equal(words.v[j], cases[i].words[j]);
		strv_done(&words);
	}
}

static void refuses_what_is_left_open(void **state)
{
	static const char *const cases[] = {"'a", "\"a", "a\\", "a 'b\" c"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct strv words = STRV_INIT;

		assert_true(shell_words_split(view_of(cases[i]), &words) < 0);
		strv_done(&words);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splits_as_a_shell_does),
		cmocka_unit_test(refuses_what_is_left_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
