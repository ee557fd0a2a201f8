/*
 * Options: arguments win over the environment, and whatever is wrong is said in a sentence.
 */
#include "execd/options.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"

#define ARGV(...) ((char *[]){(char *)"execd", __VA_ARGS__ __VA_OPT__(, ) NULL})
#define PARSE(o, e, ...)                                                                           \
	options_parse((o), (int)(ARRAY_LEN(ARGV(__VA_ARGS__)) - 1), ARGV(__VA_ARGS__), (e))

static void without_arguments_everything_has_a_default(void **state)
{
	struct err e = ERR_NONE;
	struct options o;

	assert_int_equal(PARSE(&o, &e), 0);
	assert_int_equal(o.port, 44772);
	assert_int_equal(o.listen.len, 0);
	assert_int_equal(o.grace_ms, 200);
	assert_null(o.access_token);
	assert_null(o.entrypoint);
	assert_false(o.init || o.help || o.version);
	options_done(&o);
}

static void options_are_written_in_several_ways(void **state)
{
	struct err e = ERR_NONE;
	struct options o;

	assert_int_equal(PARSE(&o, &e, (char *)"--port=1", (char *)"-log-level", (char *)"debug",
			       (char *)"--listen", (char *)"unix:/x", (char *)"--listen=fd:3",
			       (char *)"--init", (char *)"--graceful-shutdown-timeout",
			       (char *)"3s", (char *)"--", (char *)"sh", (char *)"--port",
			       (char *)"x"),
			 0);
	assert_int_equal(o.port, 1);
	assert_int_equal(o.log_level, LOG_DEBUG);
	assert_int_equal(o.listen.len, 2);
	assert_string_equal(o.listen.v[0], "unix:/x");
	assert_string_equal(o.listen.v[1], "fd:3");
	assert_true(o.init);
	assert_int_equal(o.grace_ms, 3000);
	assert_string_equal(o.entrypoint[0], "sh");
	assert_string_equal(o.entrypoint[2], "x");
	assert_null(o.entrypoint[3]);
	options_done(&o);
}

static void arguments_win_over_the_environment(void **state)
{
	struct err e = ERR_NONE;
	struct options o;

	setenv("EXECD_ACCESS_TOKEN", "from-env", 1);
	setenv("EXECD_API_GRACE_SHUTDOWN", "1m", 1);
	assert_int_equal(PARSE(&o, &e), 0);
	assert_string_equal(o.access_token, "from-env");
	assert_int_equal(o.grace_ms, 60000);
	assert_int_equal(PARSE(&o, &e, (char *)"--access-token", (char *)"given"), 0);
	assert_string_equal(o.access_token, "given");
	unsetenv("EXECD_ACCESS_TOKEN");
	unsetenv("EXECD_API_GRACE_SHUTDOWN");
}

static void what_is_wrong_is_refused_with_a_sentence(void **state)
{
	static const struct {
		const char *first, *second, *message;
	} cases[] = {
		{"--bogus", NULL, "unknown option '--bogus'; try --help"},
		{"--por", NULL, "unknown option '--por'; try --help"},
		{"program", NULL, "'program' is no option; a program comes after \"--\""},
		{"-", NULL, "'-' is no option; a program comes after \"--\""},
		{"--port", NULL, "--port needs a value"},
		{"--port", "65536", "--port: '65536' is not a port"},
		{"--port", "-1", "--port: '-1' is not a port"},
		{"--port=", NULL, "--port: '' is not a port"},
		{"--init=yes", NULL, "--init takes no value"},
		{"--listen", "/x", "--listen: '/x' is not unix:PATH, tcp:IP:PORT or fd:N"},
		{"--log-level", "loud", "--log-level: 'loud' is not a log level"},
		{"--graceful-shutdown-timeout", "5",
		 "--graceful-shutdown-timeout: '5' is not a time like 200ms or 3s"},
		{"--graceful-shutdown-timeout", "s",
		 "--graceful-shutdown-timeout: 's' is not a time like 200ms or 3s"},
		{"--graceful-shutdown-timeout", "25h",
		 "--graceful-shutdown-timeout: '25h' is more than a day"},
		{"--graceful-shutdown-timeout", "18446744073709551616ms",
		 "--graceful-shutdown-timeout: '18446744073709551616ms' is not a time like 200ms "
		 "or 3s"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *argv[] = {(char *)"execd", (char *)cases[i].first, (char *)cases[i].second,
				NULL};
		struct err e = ERR_NONE;
		struct options o;

		assert_int_equal(options_parse(&o, cases[i].second ? 3 : 2, argv, &e), -EINVAL);
		assert_string_equal(e.msg, cases[i].message);
		options_done(&o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_arguments_everything_has_a_default),
		cmocka_unit_test(options_are_written_in_several_ways),
		cmocka_unit_test(arguments_win_over_the_environment),
		cmocka_unit_test(what_is_wrong_is_refused_with_a_sentence),
	};

	unsetenv("EXECD_ACCESS_TOKEN");
	unsetenv("EXECD_API_GRACE_SHUTDOWN");
	unsetenv("EXECD_ENVS");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
