/*
 * Programs that are run to their end.
 */
#include "sys/tool.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"

static void text_goes_in_and_comes_out(void **state)
{
	const char *const argv[] = {"cat", NULL};
	struct err e = ERR_NONE;
	char text[16];

	assert_int_equal(tool_run(argv, VIEW("hello"), text, sizeof(text), &e), 0);
	assert_string_equal(text, "hello");
	assert_int_equal(tool_run(argv, VIEW("longer than its place"), text, 7, &e), 0);
	assert_string_equal(text, "longer");
	assert_int_equal(tool_run(argv, VIEW_NONE, text, sizeof(text), &e), 0);
	assert_string_equal(text, "");
}

static void the_exit_code_is_told(void **state)
{
	const char *const argv[] = {"sh", "-c", "echo out; echo err >&2; exit 7", NULL};
	const char *const killed[] = {"sh", "-c", "kill -9 $$", NULL};
	struct err e = ERR_NONE;
	char text[16];

	assert_int_equal(tool_run(argv, VIEW_NONE, text, sizeof(text), &e), 7);
	assert_string_equal(text, "out\nerr\n");
	assert_int_equal(tool_run(killed, VIEW_NONE, text, sizeof(text), &e), 128 + 9);
}

static void a_program_that_is_not_there_fails(void **state)
{
	const char *const argv[] = {"no-such-program-here", NULL};
	struct err e = ERR_NONE;
	char text[16];

	assert_int_equal(tool_run(argv, VIEW_NONE, text, sizeof(text), &e), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_goes_in_and_comes_out),
		cmocka_unit_test(the_exit_code_is_told),
		cmocka_unit_test(a_program_that_is_not_there_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
