/*
 * test_quantity.c - resource quantities.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "codec/quantity.h"

static void reads_cores_and_thousandths(void **state)
{
	static const struct {
		const char *text;
		uint64_t milli; /* 0 = refused */
	} cases[] = {
		{"1", 1000},
		{"0.5", 500},
		{"1.25", 1250},
		{" 2 ", 2000},
		{"250m", 250},
		{".5", 500},
		{"0.0015", 1},
		{"0", 0},
		{"0m", 0},
		{"", 0},
		{"m", 0},
		{"1.", 0},
		{".", 0},
		{"-1", 0},
		{"1e3", 0},
		{"1 0", 0},
		{"0x10", 0},
		{"1.2.3", 0},
		{"2000000", 0},
		{"1000000", 1000000000},
		{"99999999999999999999", 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t n = 0;

		assert_int_equal(quantity_cpu_milli(view_of(cases[i].text), &n),
				 cases[i].milli != 0);
		assert_int_equal(n, cases[i].milli);
	}
}

static void reads_bytes_with_units(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes; /* 0 = refused */
	} cases[] = {
		{"1", 1},
		{"512Mi", 512u << 20},
		{"2Gi", UINT64_C(2) << 30},
		{"1g", 1000000000},
		{"1GB", 1000000000},
		{"64k", 64000},
		{"64kI", 65536},
		{" 7b ", 7},
		{"1Ti", UINT64_C(1) << 40},
		{"0", 0},
		{"1.5Gi", 0},
		{"-1", 0},
		{"", 0},
		{"Mi", 0},
		{"1 Mi", 0},
		{"1Pi", 0},
		{"99999999Ti", 0},
		{"1048576Ti", UINT64_C(1) << 60},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t n = 0;

		assert_int_equal(quantity_bytes(view_of(cases[i].text), &n), cases[i].bytes != 0);
		assert_int_equal(n, cases[i].bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_cores_and_thousandths),
		cmocka_unit_test(reads_bytes_with_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
