/*
 * String vectors: always NULL-terminated; environments hold each name once.
 */
#include "base/strv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"

static void a_vector_is_always_terminated(void **state)
{
	osb_cleanup(strv_done) struct strv s = STRV_INIT;

	assert_null(strv_args(&s)[0]);
	for (int i = 0; i < 100; i++) {
		char text[16];

		sprintf(text, "%d", i);
		strv_add(&s, text);
		assert_string_equal(strv_args(&s)[i], text);
		assert_null(strv_args(&s)[i + 1]);
	}
	assert_int_equal(s.len, 100);
	strv_done(&s);
	strv_done(&s);
	assert_null(strv_args(&s)[0]);
}

static void strings_come_from_everywhere(void **state)
{
	osb_cleanup(strv_done) struct strv s = STRV_INIT, copy = STRV_INIT;

	strv_add_view(&s, view_first(VIEW("hello"), 2));
	strv_add_view(&s, VIEW_NONE);
	strv_take(&s, mem_strdup("own"));
	strv_copy(&copy, NULL);
	assert_int_equal(copy.len, 0);
	strv_copy(&copy, s.v);
	strv_copy(&copy, s.v);
	assert_int_equal(copy.len, 6);
	assert_string_equal(copy.v[0], "he");
	assert_string_equal(copy.v[1], "");
	assert_string_equal(copy.v[5], "own");
	assert_null(copy.v[6]);
}

static void an_environment_holds_each_name_once(void **state)
{
	osb_cleanup(strv_done) struct strv s = STRV_INIT;

	strv_env_set(&s, VIEW("A"), VIEW("1"));
	strv_env_set(&s, VIEW("AB"), VIEW("2=3"));
	strv_env_set(&s, VIEW("C"), VIEW_NONE);
	assert_string_equal(strv_env_get(&s, VIEW("A")), "1");
	assert_string_equal(strv_env_get(&s, VIEW("AB")), "2=3");
	assert_string_equal(strv_env_get(&s, VIEW("C")), "");
	assert_null(strv_env_get(&s, VIEW("B")));
	assert_null(strv_env_get(&s, VIEW("ABC")));
	strv_env_set(&s, VIEW("A"), VIEW("new"));
	assert_int_equal(s.len, 3);
	assert_string_equal(s.v[0], "A=new");
	strv_env_unset(&s, VIEW("A"));
	strv_env_unset(&s, VIEW("A"));
	assert_int_equal(s.len, 2);
	assert_string_equal(s.v[0], "AB=2=3");
	assert_null(s.v[2]);
	strv_env_unset(&s, VIEW("C"));
	assert_null(s.v[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_vector_is_always_terminated),
		cmocka_unit_test(strings_come_from_everywhere),
		cmocka_unit_test(an_environment_holds_each_name_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
