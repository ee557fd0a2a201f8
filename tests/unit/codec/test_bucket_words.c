/*
 * test_bucket_words.c - nothing that could name a file of the host, or add an option, passes.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "codec/bucket_words.h"

static const struct {
	bool (*ok)(struct view text);
	struct view text;
	bool want;
} cases[] = {
	{bucket_name_ok, {"buck-1.x", 8}, true},
	{bucket_name_ok, {"", 0}, false},
	{bucket_name_ok, {"-o", 2}, false},
	{bucket_name_ok, {".x", 2}, false},
	{bucket_name_ok, {"a:/etc", 6}, false},
	{bucket_name_ok, {"a\0b", 3}, false},
	{bucket_endpoint_ok, {"http://s3:9000", 14}, true},
	{bucket_endpoint_ok, {"[::1]:80", 8}, true},
	{bucket_endpoint_ok, {"s3,credlib=x", 12}, false},
	{bucket_endpoint_ok, {"-x", 2}, false},
	{bucket_endpoint_ok, {"a\nb", 3}, false},
	{bucket_endpoint_ok, {"", 0}, false},
	{bucket_key_ok, {"aB+/=0._-", 9}, true},
	{bucket_key_ok, {"a:b", 3}, false},
	{bucket_key_ok, {"a\n--x", 5}, false},
	{bucket_key_ok, {"", 0}, false},
	{bucket_option_ok, {"ro", 2}, true},
	{bucket_option_ok, {"umask=022", 9}, true},
	{bucket_option_ok, {"credlib=x.so", 12}, false},
	{bucket_option_ok, {"use_cache=x", 11}, false},
	{bucket_option_ok, {"umask=0,logfile=x", 17}, false},
	{bucket_option_ok, {"region=/etc", 11}, false},
	{bucket_option_ok, {"ro\n", 3}, false},
	{bucket_option_ok, {"", 0}, false},
};

static void judges_each(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (cases[i].ok(cases[i].text) != cases[i].want)
			fail_msg("case %zu: '%s'", i, cases[i].text.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judges_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
