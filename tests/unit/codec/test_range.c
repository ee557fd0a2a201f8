/*
 * test_range.c - the Range header.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/range.h"

static void picks_the_first_range_that_can_be_served(void **state)
{
	static const struct {
		const char *header;
		uint64_t size;
		enum range_result result;
		uint64_t start, len;
	} cases[] = {
		{"bytes=0-0", 10, RANGE_OK, 0, 1},
		{"bytes=0-", 10, RANGE_OK, 0, 10},
		{"bytes=3-5", 10, RANGE_OK, 3, 3},
		{"bytes=3-500", 10, RANGE_OK, 3, 7},
		{"bytes=9-", 10, RANGE_OK, 9, 1},
		{"bytes=-3", 10, RANGE_OK, 7, 3},
		{"bytes=-30", 10, RANGE_OK, 0, 10},
		{"BYTES=1-2", 10, RANGE_OK, 1, 2},
		{"bytes= 1-2 ,\t4-5", 10, RANGE_OK, 1, 2},
		{"bytes=,,1-2", 10, RANGE_OK, 1, 2},
		{"bytes=20-30, 4-5", 10, RANGE_OK, 4, 2},
		{"bytes=0-99999999999999999999999", 10, RANGE_OK, 0, 10},
		{"bytes=-99999999999999999999999", 10, RANGE_OK, 0, 10},
		{"bytes=0-18446744073709551615", UINT64_MAX, RANGE_OK, 0, UINT64_MAX},
		{"bytes=10-", 10, RANGE_UNSATISFIABLE, 0, 0},
		{"bytes=-0", 10, RANGE_UNSATISFIABLE, 0, 0},
		{"bytes=0-0", 0, RANGE_UNSATISFIABLE, 0, 0},
		{"bytes=-5", 0, RANGE_UNSATISFIABLE, 0, 0},
		{"bytes=99999999999999999999999-", 10, RANGE_UNSATISFIABLE, 0, 0},
		{"lines=1-2", 10, RANGE_IGNORED, 0, 0},
		{"x=whatever", 10, RANGE_IGNORED, 0, 0},
		{"", 10, RANGE_MALFORMED, 0, 0},
		{"bytes", 10, RANGE_MALFORMED, 0, 0},
		{"bytes=", 10, RANGE_MALFORMED, 0, 0},
		{"bytes=,", 10, RANGE_MALFORMED, 0, 0},
		{"bytes =1-2", 10, RANGE_MALFORMED, 0, 0},
		{"=1-2", 10, RANGE_MALFORMED, 0, 0},
		{"bytes=5", 10, RANGE_MALFORMED, 0, 0},
		{"bytes=-", 10, RANGE_MALFORMED, 0, 0},
		{"bytes=5-3", 10, RANGE_MALFORMED, 0, 0},
		{"bytes=a-b", 10, RANGE_MALFORMED, 0, 0},
		{"bytes=1-2-3", 10, RANGE_MALFORMED, 0, 0},
		{"bytes=--5", 10, RANGE_MALFORMED, 0, 0},
		{"bytes=1 - 2", 10, RANGE_MALFORMED, 0, 0},
		{"bytes=+1-2", 10, RANGE_MALFORMED, 0, 0},
		{"bytes=0x1-2", 10, RANGE_MALFORMED, 0, 0},
		{"bytes=1-2,x", 10, RANGE_MALFORMED, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t start = 0, len = 0;
		enum range_result r =
			range_parse(view_of(cases[i].header), cases[i].size, &start, &len);

		if (r != cases[i].result || start != cases[i].start || len != cases[i].len)
			fail_msg("%s: %d, %ju+%ju", cases[i].header, r, (uintmax_t)start,
				 (uintmax_t)len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(picks_the_first_range_that_can_be_served),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
