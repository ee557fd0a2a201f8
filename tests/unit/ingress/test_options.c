/*
 * test_options.c - the command line of the gateway.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "ingress/options.h"

#define WORDS_MAX 16

/* Parses a line of words; they are written to, as argv may be. */
static int parse(const char *line, struct options *o, char *copy, size_t size, struct err *e)
{
	char *argv[WORDS_MAX] = {(char[]){"opensandbox-ingress"}};
	int argc = 1;

	snprintf(copy, size, "%s", line);
	for (char *p = copy; *p && argc < WORDS_MAX - 1;) {
		argv[argc++] = p;
		p += strcspn(p, " ");
		if (*p)
			*p++ = '\0';
	}
	return options_parse(argc, argv, o, e);
}

static void has_the_documented_defaults(void **state)
{
	struct err e = ERR_NONE;
	struct options o;
	char copy[256];

	assert_int_equal(parse("--server http://x", &o, copy, sizeof(copy), &e), 0);
	assert_int_equal(o.port, 28888);
	assert_int_equal(o.mode, PREVIEW_HEADER);
	assert_int_equal(o.level, LOG_INFO);
	assert_false(o.renew);
	assert_string_equal(o.redis.host, "127.0.0.1");
	assert_int_equal(o.redis.port, 6379);
	assert_string_equal(o.queue_key, "opensandbox:renew:intent");
	assert_int_equal(o.queue_max_len, 0);
	assert_int_equal(o.min_interval_s, 60);
	assert_null(o.api_key);
	options_done(&o);
}

static void takes_one_dash_or_two(void **state)
{
	struct err e = ERR_NONE;
	struct options o;
	char copy[256];

	assert_int_equal(
		parse("-server http://a --server=http://b -port=1 --mode uri "
		      "-renew-intent-enabled -renew-intent-min-interval 0 -log-level DEBUG",
		      &o, copy, sizeof(copy), &e),
		0);
	assert_int_equal(o.servers.len, 2);
	assert_string_equal(o.servers.v[1], "http://b");
	assert_int_equal(o.port, 1);
	assert_int_equal(o.mode, PREVIEW_URI);
	assert_int_equal(o.level, LOG_DEBUG);
	assert_true(o.renew);
	assert_int_equal(o.min_interval_s, 0);
	options_done(&o);
	assert_int_equal(
		parse("--server http://a --renew-intent-enabled=false", &o, copy, sizeof(copy), &e),
		0);
	assert_false(o.renew);
	options_done(&o);
}

static void hides_what_is_secret(void **state)
{
	struct err e = ERR_NONE;
	struct options o;
	char copy[256];

	assert_int_equal(parse("--server http://a --api-key sesame --secure-access-keys=a=c2VzYW1l "
			       "--renew-intent-redis-dsn redis://:sesame@host",
			       &o, copy, sizeof(copy), &e),
			 0);
	assert_string_equal(o.api_key, "sesame");
	assert_int_equal(o.keys_n, 1);
	assert_string_equal(o.redis.password, "sesame");
	for (size_t i = 0; i + 6 < sizeof(copy); i++) {
		assert_memory_not_equal(copy + i, "sesame", 6);
		assert_memory_not_equal(copy + i, "c2VzYW", 6);
	}
	options_done(&o);
}

static void the_environment_has_the_key(void **state)
{
	struct err e = ERR_NONE;
	struct options o;
	char copy[256];

	assert_int_equal(setenv("OPEN_SANDBOX_API_KEY", "from outside", 1), 0);
	assert_int_equal(parse("--server http://x", &o, copy, sizeof(copy), &e), 0);
	assert_string_equal(o.api_key, "from outside");
	options_done(&o);
	assert_int_equal(parse("--server http://x --api-key given", &o, copy, sizeof(copy), &e), 0);
	assert_string_equal(o.api_key, "given");
	options_done(&o);
	assert_int_equal(unsetenv("OPEN_SANDBOX_API_KEY"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_the_documented_defaults),
		cmocka_unit_test(takes_one_dash_or_two),
		cmocka_unit_test(hides_what_is_secret),
		cmocka_unit_test(the_environment_has_the_key),
	};

	(void)unsetenv("OPEN_SANDBOX_API_KEY");
	(void)unsetenv("OPEN_SANDBOX_REDIS_DSN");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
