/*
 * Errors are values: one line, the right code, context in front, never too long.
 */
#include "base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"

static void set_records_code_and_message(void **state)
{
	struct err e = ERR_NONE;

	assert_int_equal(err_set(&e, -ENOENT, "open '%s'", "/x"), -ENOENT);
	assert_int_equal(e.code, -ENOENT);
	assert_string_equal(e.msg, "open '/x'");
}

static void percent_m_is_the_error_of_the_caller(void **state)
{
	struct err e = ERR_NONE;

	errno = EACCES;
	err_set(&e, -errno, "open: %m");
	assert_string_equal(e.msg, "open: Permission denied");
	assert_int_equal(errno, EACCES);
}

static void context_goes_in_front_and_keeps_the_code(void **state)
{
	struct err e = ERR_NONE;

	err_set(&e, -EIO, "read");
	assert_int_equal(err_ctx(&e, "load %d", 7), -EIO);
	assert_int_equal(err_ctx(&e, "start"), -EIO);
	assert_string_equal(e.msg, "start: load 7: read");
	err_ctx(&e, "%s", "");
	assert_string_equal(e.msg, "start: load 7: read");
}

static void a_message_may_quote_the_message_it_replaces(void **state)
{
	struct err e = ERR_NONE;

	err_set(&e, -EIO, "inner");
	err_set(&e, -EINVAL, "outer (%s)", e.msg);
	assert_string_equal(e.msg, "outer (inner)");
}

static void a_message_is_one_line(void **state)
{
	struct err e = ERR_NONE;

	err_set(&e, -EIO,
		"a\nb\rc\td\x7f"
		"e");
	assert_string_equal(e.msg, "a b c d e");
}

static void a_long_message_is_cut_between_characters(void **state)
{
	struct err e = ERR_NONE;
	char text[600];

	for (size_t shift = 0; shift < 4; shift++) {
		memset(text, 'x', shift);
		for (size_t i = shift; i + 4 < sizeof(text); i += 3)
			memcpy(text + i, "\xe2\x82\xac", 4);
		err_set(&e, -EIO, "%s", text);
		assert_true(strlen(e.msg) >= sizeof(e.msg) - 4);
		assert_true(utf8_valid(view_of(e.msg)));
		for (int i = 0; i < 5; i++)
			err_ctx(&e, "%s", text);
		assert_true(strlen(e.msg) < sizeof(e.msg));
		assert_true(utf8_valid(view_of(e.msg)));
		assert_int_equal(e.code, -EIO);
	}
}

static void without_an_error_object_a_failure_stays_one(void **state)
{
	assert_int_equal(err_set(NULL, -ENOENT, "x"), -ENOENT);
	assert_true(err_ctx(NULL, "x") < 0);
	assert_true(err_set(NULL, 0, "x") < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_records_code_and_message),
		cmocka_unit_test(percent_m_is_the_error_of_the_caller),
		cmocka_unit_test(context_goes_in_front_and_keeps_the_code),
		cmocka_unit_test(a_message_may_quote_the_message_it_replaces),
		cmocka_unit_test(a_message_is_one_line),
		cmocka_unit_test(a_long_message_is_cut_between_characters),
		cmocka_unit_test(without_an_error_object_a_failure_stays_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
