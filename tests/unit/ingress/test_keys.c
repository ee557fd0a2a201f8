/*
 * test_keys.c - the keys of signed routes on the command line.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "ingress/keys.h"
#include "policy/preview.h"

static void reads_names_and_secrets(void **state)
{
	struct route_key *keys = NULL;
	struct err e = ERR_NONE;
	size_t n = 0;

	assert_int_equal(
		keys_parse(VIEW("a=c2VjcmV0LWtleS0wMTIzNDU2Nzg5, 7=AQIDBA=="), &keys, &n, &e), 0);
	assert_int_equal(n, 2);
	assert_int_equal(keys[0].id, 'a');
	assert_int_equal(keys[0].len, 21);
	assert_memory_equal(keys[0].secret, "secret-key-0123456789", 21);
	assert_int_equal(keys[1].id, '7');
	assert_memory_equal(keys[1].secret, "\1\2\3\4", 4);
	free(keys);
}

static void refuses_everything_else(void **state)
{
	static const char *const cases[] = {
		"",	"a",	   "a=",       "=eA==",		"aa=eA==", "A=eA==",
		"a=!!", "a=eA==,", "a=eA==,b", "a=eA==,a=eQ==", ",a=eA==",
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct route_key *keys = NULL;
		struct err e = ERR_NONE;
		size_t n;

		/* A comma at the end adds nothing. */
		if (strcmp(cases[i], "a=eA==,") == 0) {
			assert_int_equal(keys_parse(view_of(cases[i]), &keys, &n, &e), 0);
			free(keys);
			continue;
		}
		assert_true(keys_parse(view_of(cases[i]), &keys, &n, &e) < 0);
		assert_true(e.msg[0] != '\0');
	}
}

static void takes_as_many_as_there_are_names(void **state)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(4096);
	struct route_key *keys = NULL;
	struct err e = ERR_NONE;
	size_t n = 0;

	for (int i = 0; i < PREVIEW_KEYS_MAX; i++)
		assert_int_equal(buf_printf(&text, "%c=eA==,", i < 10 ? '0' + i : 'a' + i - 10), 0);
	assert_int_equal(keys_parse(buf_view(&text), &keys, &n, &e), 0);
	assert_int_equal(n, PREVIEW_KEYS_MAX);
	free(keys);
	assert_int_equal(buf_append_str(&text, "0=eA=="), 0);
	assert_int_equal(keys_parse(buf_view(&text), &keys, &n, &e), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_names_and_secrets),
		cmocka_unit_test(refuses_everything_else),
		cmocka_unit_test(takes_as_many_as_there_are_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
