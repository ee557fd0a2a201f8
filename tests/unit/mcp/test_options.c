/*
 * The command line of opensandbox-mcp.
 */
#include "mcp/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

static int parse(struct options *o, struct err *e, const char *a, const char *b)
{
	char *argv[] = {(char *)(uintptr_t) "opensandbox-mcp", (char *)(uintptr_t)a,
			(char *)(uintptr_t)b, NULL};

	return options_parse(b ? 3 : a ? 2 : 1, argv, o, e);
}

static void defaults_are_the_reference_s(void **state)
{
	struct err e = ERR_NONE;
	struct options o;

	assert_int_equal(parse(&o, &e, NULL, NULL), 0);
	assert_false(o.http || o.help || o.version || o.domain || o.api_key || o.protocol);
	assert_string_equal(o.host, "127.0.0.1");
	assert_int_equal(o.port, 8000);
	assert_int_equal(o.timeout_ms, 0);
}

static void options_are_read(void **state)
{
	struct err e = ERR_NONE;
	struct options o;

	assert_true(parse(&o, &e, "--transport", "streamable-http") == 0 && o.http);
	assert_true(parse(&o, &e, "--transport=stdio", NULL) == 0 && !o.http);
	assert_true(parse(&o, &e, "--request-timeout-seconds", "1.5") == 0 && o.timeout_ms == 1500);
	assert_true(parse(&o, &e, "--port", "0") == 0 && o.port == 0);
	assert_true(parse(&o, &e, "--host", "localhost") == 0 && !strcmp(o.host, "127.0.0.1"));
	assert_true(parse(&o, &e, "--embedded", NULL) == 0 && o.embedded);
	assert_true(parse(&o, &e, "--api-key", "k") == 0 && !strcmp(o.api_key, "k"));
}

static void nonsense_is_named(void **state)
{
	static const char *const cases[][2] = {
		{"--transport", "sse"},
		{"--port", "65536"},
		{"--port", "x"},
		{"--protocol", "ftp"},
		{"--request-timeout-seconds", "0"},
		{"--request-timeout-seconds", "nan"},
		{"--request-timeout-seconds", "1s"},
		{"--domain", NULL},
		{"--nothing", NULL},
		{"word", NULL},
		{"--embedded", "--domain=x"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct options o;

		assert_int_equal(parse(&o, &e, cases[i][0], cases[i][1]), -EINVAL);
		assert_non_null(strstr(e.msg, i == ARRAY_LEN(cases) - 1 ? "--embedded"
					      : cases[i][1]		? cases[i][1]
									: cases[i][0]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_the_reference_s),
		cmocka_unit_test(options_are_read),
		cmocka_unit_test(nonsense_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
