/*
 * Start files: what is taken out of them, and what is refused.
 */
#include "execd/start_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "codec/json.h"

static void everything_is_taken_out(void **state)
{
	struct view text =
		VIEW("{\"entrypoint\":[\"sh\",\"-c\",\"\"],\"env\":{\"A\":\"1\",\"B\":\"\"},"
		     "\"cwd\":\"/w\",\"user\":\"a:b\",\"token\":\"t\",\"codePool\":\"bash:1\","
		     "\"lifecycle\":{\"preStart\":{}}}");
	struct err e = ERR_NONE;
	struct start_file f;

	assert_int_equal(start_file_parse(text, &f, &e), 0);
	assert_int_equal(f.entrypoint.len, 3);
	assert_string_equal(f.entrypoint.v[2], "");
	assert_int_equal(f.env.len, 2);
	assert_string_equal(f.env.v[1], "B=");
	assert_string_equal(f.cwd, "/w");
	assert_string_equal(f.user, "a:b");
	assert_string_equal(f.token, "t");
	assert_string_equal(f.code_pool, "bash:1");
	assert_non_null(json_get(f.lifecycle, "preStart"));
	start_file_done(&f);
}

static void everything_may_be_missing(void **state)
{
	static const char *const texts[] = {
		"{}",
		"{\"entrypoint\":null,\"env\":null,\"cwd\":null,\"token\":null,\"lifecycle\":null}",
		"{\"entrypoint\":[],\"env\":{},\"cwd\":\"\",\"token\":\"\",\"more\":1}",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct err e = ERR_NONE;
		struct start_file f;

		assert_int_equal(start_file_parse(view_of(texts[i]), &f, &e), 0);
		assert_int_equal(f.entrypoint.len + f.env.len, 0);
		assert_null(f.cwd);
		assert_null(f.token);
		assert_null(f.lifecycle);
		start_file_done(&f);
	}
}

static void what_is_wrong_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"null",
		"[]",
		"{} x",
		"{\"entrypoint\":{}}",
		"{\"entrypoint\":[null]}",
		"{\"entrypoint\":[\"\\u0000\"]}",
		"{\"env\":[]}",
		"{\"env\":{\"\":\"x\"}}",
		"{\"env\":{\"A\":null}}",
		"{\"env\":{\"A\":\"\\u0000\"}}",
		"{\"cwd\":\"/\\u0000\"}",
		"{\"token\":1}",
		"{\"lifecycle\":[]}",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct start_file f = {0};
		struct err e = ERR_NONE;

		if (start_file_parse(view_of(texts[i]), &f, &e) >= 0)
			fail_msg("%s was taken", texts[i]);
		assert_true(e.msg[0] != '\0');
		assert_null(f.root);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_taken_out),
		cmocka_unit_test(everything_may_be_missing),
		cmocka_unit_test(what_is_wrong_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
