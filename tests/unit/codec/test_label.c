/*
 * test_label.c - metadata keys and values.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macro.h"
#include "codec/label.h"

static void checks_keys(void **state)
{
	static const struct {
		const char *key;
		bool valid;
	} cases[] = {
		{"a", true},
		{"team", true},
		{"a.b_c-d", true},
		{"example.com/x", true},
		{"A1", true},
		{"", false},
		{"-a", false},
		{"a-", false},
		{"a b", false},
		{"/a", false},
		{"a/", false},
		{"a/b/c", false},
		{"Example.com/x", false},
		{"a..b/x", false},
		{"a./x", false},
		{"\xc3\xa4", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(label_key_valid(view_of(cases[i].key)), cases[i].valid);
}

static void bounds_lengths(void **state)
{
	char long_name[64], prefixed[320];

	(void)state;
	memset(long_name, 'a', sizeof(long_name));
	assert_true(label_value_valid(view_mem(long_name, 63)));
	assert_false(label_value_valid(view_mem(long_name, 64)));
	assert_true(label_value_valid(VIEW("")));
	memset(prefixed, 'p', sizeof(prefixed));
	memcpy(prefixed + 253, "/x", 2);
	assert_true(label_key_valid(view_mem(prefixed, 255)));
	prefixed[253] = 'p';
	memcpy(prefixed + 254, "/x", 2);
	assert_false(label_key_valid(view_mem(prefixed, 256)));
}

static void knows_reserved_keys(void **state)
{
	(void)state;
	assert_true(label_key_reserved(VIEW("opensandbox.io/id")));
	assert_false(label_key_reserved(VIEW("opensandbox.io")));
	assert_false(label_key_reserved(VIEW("x.opensandbox.io/id")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checks_keys),
		cmocka_unit_test(bounds_lengths),
		cmocka_unit_test(knows_reserved_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
