/*
 * Numbers from text: the whole text or nothing.
 */
#include "base/num.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void only_plain_digits_are_numbers(void **state)
{
	static const char *const bad[] = {"",	 "-",	"+1",  " 1",	   "1 ", "1a",
					  "0x1", "1.0", "--1", "\xc2\xb2", ":",	 "/"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		uint64_t u = 77;
		int64_t s = 77;
		uint32_t w = 77;

		assert_false(num_parse_u64(view_of(bad[i]), &u));
		assert_false(num_parse_i64(view_of(bad[i]), &s));
		assert_false(num_parse_u32(view_of(bad[i]), &w));
		assert_false(num_parse_octal(view_of(bad[i]), &w));
		assert_true(u == 77 && s == 77 && w == 77);
	}
	assert_false(num_parse_u64(VIEW("-1"), &(uint64_t){0}));
	assert_false(num_parse_u64(VIEW("1\0"), &(uint64_t){0}));
}

static void limits_are_exact(void **state)
{
	uint64_t u;
	int64_t s;
	uint32_t w;

	assert_true(num_parse_u64(VIEW("18446744073709551615"), &u) && u == UINT64_MAX);
	assert_false(num_parse_u64(VIEW("18446744073709551616"), &u));
	assert_false(num_parse_u64(VIEW("99999999999999999999"), &u));
	assert_true(num_parse_u64(VIEW("00000000000000000000000000000000000000042"), &u) &&
		    u == 42);
	assert_true(num_parse_i64(VIEW("9223372036854775807"), &s) && s == INT64_MAX);
	assert_false(num_parse_i64(VIEW("9223372036854775808"), &s));
	assert_true(num_parse_i64(VIEW("-9223372036854775808"), &s) && s == INT64_MIN);
	assert_false(num_parse_i64(VIEW("-9223372036854775809"), &s));
	assert_true(num_parse_i64(VIEW("-0"), &s) && s == 0);
	assert_true(num_parse_i64(VIEW("-1"), &s) && s == -1);
	assert_true(num_parse_u32(VIEW("4294967295"), &w) && w == UINT32_MAX);
	assert_false(num_parse_u32(VIEW("4294967296"), &w));
}

static void octal_has_at_most_six_digits(void **state)
{
	char room[NUM_DECIMAL_MAX];
	uint32_t w;

	assert_true(view_is(num_format_u64(0, room), "0"));
	assert_true(view_is(num_format_u64(8080, room), "8080"));
	assert_true(view_is(num_format_u64(UINT64_MAX, room), "18446744073709551615"));
	assert_true(num_parse_octal(VIEW("0755"), &w) && w == 0755);
	assert_true(num_parse_octal(VIEW("777777"), &w) && w == 0777777);
	assert_false(num_parse_octal(VIEW("0777777"), &w));
	assert_false(num_parse_octal(VIEW("8"), &w));
	assert_false(num_parse_octal(VIEW("-7"), &w));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_plain_digits_are_numbers),
		cmocka_unit_test(limits_are_exact),
		cmocka_unit_test(octal_has_at_most_six_digits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
