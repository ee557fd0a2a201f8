/*
 * Environments: the request wins over the file, the file over the daemon; settings stay at home.
 */
#include "execd/env.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/strv.h"
#include "codec/json.h"
#include "execd/app.h"
#include "execd/options.h"

static void settings_are_not_inherited(void **state)
{
	char *environment[] = {(char *)"PATH=/bin", (char *)"EXECD_ACCESS_TOKEN=x",
			       (char *)"EXECD_=1", (char *)"MY_EXECD_X=kept", NULL};
	osb_cleanup(strv_done) struct strv env = STRV_INIT;

	env_inherit(&env, environment);
	assert_int_equal(env.len, 2);
	assert_string_equal(env.v[0], "PATH=/bin");
	assert_string_equal(env.v[1], "MY_EXECD_X=kept");
}

static void home_is_that_of_the_environment(void **state)
{
	osb_cleanup(strv_done) struct strv env = STRV_INIT;
	char *home;

	strv_add(&env, "HOME=/somewhere");
	home = env_home(&env);
	assert_string_equal(home, "/somewhere");
	free(home);
	strv_done(&env);
	home = env_home(&env);
	assert_int_equal(home[0], '/');
	free(home);
}

static void later_ones_win(void **state)
{
	char path[] = "/tmp/osb-env-XXXXXX";
	struct options options = {.envs_file = path};
	struct app app = {.options = &options};
	osb_cleanup(json_freep) struct json *envs = NULL;
	osb_cleanup(strv_done) struct strv env = STRV_INIT;
	static const char text[] = "# one\nA=file\nB=\"$D/x\"\nexport C='$D'\nnonsense\nE=$NONE.\n";
	struct err e = ERR_NONE;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	strv_add(&app.env, "A=daemon");
	strv_add(&app.env, "D=d");
	assert_false(env_is_plain(&app));
	assert_int_equal(json_parse(VIEW("{\"A\":\"request\",\"F\":\"\"}"), 0, &envs, &e), 0);
	assert_int_equal(env_for_command(&app, envs, &env, &e), 0);
	assert_string_equal(strv_env_get(&env, VIEW("A")), "request");
	assert_string_equal(strv_env_get(&env, VIEW("B")), "d/x");
	assert_string_equal(strv_env_get(&env, VIEW("C")), "$D");
	assert_string_equal(strv_env_get(&env, VIEW("D")), "d");
	assert_string_equal(strv_env_get(&env, VIEW("E")), ".");
	assert_string_equal(strv_env_get(&env, VIEW("F")), "");
	unlink(path);
	strv_done(&app.env);
}

static void a_missing_file_adds_nothing(void **state)
{
	struct options options = {.envs_file = "/no/such/file"};
	struct app app = {.options = &options};
	osb_cleanup(strv_done) struct strv env = STRV_INIT;
	struct err e = ERR_NONE;

	assert_int_equal(env_for_command(&app, NULL, &env, &e), 0);
	assert_int_equal(env.len, 0);
}

static void what_is_no_variable_is_refused(void **state)
{
	static const char *const cases[] = {
		"{\"\":\"x\"}", "{\"A=B\":\"x\"}",	 "{\"A\":1}",
		"{\"A\":null}", "{\"A\":\"a\\u0000b\"}", "{\"A\":[]}",
	};
	struct options options = {0};
	struct app app = {.options = &options};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(json_freep) struct json *envs = NULL;
		osb_cleanup(strv_done) struct strv env = STRV_INIT;
		struct err e = ERR_NONE;

		assert_int_equal(json_parse(view_of(cases[i]), 0, &envs, &e), 0);
		assert_int_equal(env_for_command(&app, envs, &env, &e), -EINVAL);
		assert_non_null(strstr(e.msg, "envs"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_are_not_inherited),
		cmocka_unit_test(home_is_that_of_the_environment),
		cmocka_unit_test(later_ones_win),
		cmocka_unit_test(a_missing_file_adds_nothing),
		cmocka_unit_test(what_is_no_variable_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
