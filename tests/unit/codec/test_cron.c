/*
 * Schedules: what is one, and when it comes round next.
 */
#include "codec/cron.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "codec/rfc3339.h"

static int64_t seconds(const char *text)
{
	int64_t ns;

	assert_true(rfc3339_parse(view_of(text), &ns));
	return ns / 1000000000;
}

static void the_next_moment_is_found(void **state)
{
	/* 2026-11-15 is a Sunday. */
	static const struct {
		const char *schedule, *after, *next;
	} cases[] = {
		{"* * * * *", "2026-11-15T10:00:00Z", "2026-11-15T10:01:00Z"},
		{"* * * * *", "2026-11-15T10:00:59Z", "2026-11-15T10:01:00Z"},
		{"*/5 * * * *", "2026-11-15T10:02:00Z", "2026-11-15T10:05:00Z"},
		{"*/5 * * * *", "2026-11-15T23:58:00Z", "2026-11-16T00:00:00Z"},
		{"7-20/6 * * * *", "2026-11-15T10:07:00Z", "2026-11-15T10:13:00Z"},
		{"50/4 * * * *", "2026-11-15T10:55:00Z", "2026-11-15T10:58:00Z"},
		{"0 9-17 * * *", "2026-11-15T17:00:00Z", "2026-11-16T09:00:00Z"},
		{"30 23 * * *", "2026-11-15T23:30:00Z", "2026-11-16T23:30:00Z"},
		{"15,45 6 * * *", "2026-11-15T06:15:00Z", "2026-11-15T06:45:00Z"},
		{"0 0 1 * *", "2026-12-31T10:00:00Z", "2027-01-01T00:00:00Z"},
		{"0 0 31 * *", "2026-11-15T00:00:00Z", "2026-12-31T00:00:00Z"},
		{"0 0 29 2 *", "2026-11-15T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"0 0 * * MON", "2026-11-15T10:00:00Z", "2026-11-16T00:00:00Z"},
		{"0 0 * * 0", "2026-11-15T10:00:00Z", "2026-11-22T00:00:00Z"},
		{"0 0 * * 7", "2026-11-15T10:00:00Z", "2026-11-22T00:00:00Z"},
		{"0 0 * * 5-7", "2026-11-16T10:00:00Z", "2026-11-20T00:00:00Z"},
		{"0 0 * jan-mar ?", "2026-11-15T10:00:00Z", "2027-01-01T00:00:00Z"},
		{"0 0 ? DEC Fri", "2026-11-15T10:00:00Z", "2026-12-04T00:00:00Z"},
		/* both kinds of days: either will do */
		{"0 0 13 * FRI", "2026-11-15T10:00:00Z", "2026-11-20T00:00:00Z"},
		{"0 0 16 * FRI", "2026-11-15T10:00:00Z", "2026-11-16T00:00:00Z"},
		{"@hourly", "2026-11-15T10:00:00Z", "2026-11-15T11:00:00Z"},
		{"@daily", "2026-11-15T10:00:00Z", "2026-11-16T00:00:00Z"},
		{"@midnight", "2026-11-15T10:00:00Z", "2026-11-16T00:00:00Z"},
		{"@weekly", "2026-11-15T10:00:00Z", "2026-11-22T00:00:00Z"},
		{"@monthly", "2026-11-15T10:00:00Z", "2026-12-01T00:00:00Z"},
		{"@yearly", "2026-11-15T10:00:00Z", "2027-01-01T00:00:00Z"},
		{"@annually", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"@every 90s", "2026-11-15T10:00:00Z", "2026-11-15T10:01:30Z"},
		{"@every 1m30s", "2026-11-15T10:00:00Z", "2026-11-15T10:01:30Z"},
		{"@every 1h", "2026-11-15T10:00:01Z", "2026-11-15T11:00:01Z"},
		{"  0\t0 * * *  ", "2026-11-15T10:00:00Z", "2026-11-16T00:00:00Z"},
		{"59 23 31 12 *", "2099-12-31T23:58:00Z", "2099-12-31T23:59:00Z"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct cron c;

		if (cron_parse(view_of(cases[i].schedule), &c, &e) < 0)
			fail_msg("%s: %s", cases[i].schedule, e.msg);
		if (cron_next(&c, seconds(cases[i].after)) != seconds(cases[i].next))
			fail_msg("'%s' after %s is not %s", cases[i].schedule, cases[i].after,
				 cases[i].next);
	}
}

static void what_never_comes_is_told(void **state)
{
	static const char *const never[] = {"0 0 30 2 *", "0 0 31 4,6,9,11 *", "* * 31 FEB ?"};

	for (size_t i = 0; i < ARRAY_LEN(never); i++) {
		struct err e = ERR_NONE;
		struct cron c;

		assert_int_equal(cron_parse(view_of(never[i]), &c, &e), 0);
		assert_int_equal(cron_next(&c, seconds("2026-11-15T10:00:00Z")), 0);
	}
}

static void any_moment_may_be_asked_for(void **state)
{
	static const int64_t moments[] = {INT64_MIN, -1, 0, 1, INT64_MAX};
	struct err e = ERR_NONE;
	struct cron c;

	assert_int_equal(cron_parse(VIEW("* * * * *"), &c, &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(moments); i++)
		assert_true(cron_next(&c, moments[i]) > 0);
}

static void what_is_no_schedule_is_refused_in_a_sentence(void **state)
{
	static const char *const bad[] = {
		"",
		"*",
		"* * * *",
		"* * * * * *",
		"60 * * * *",
		"* 24 * * *",
		"* * 0 * *",
		"* * 32 * *",
		"* * * 0 *",
		"* * * 13 *",
		"* * * * 8",
		"-1 * * * *",
		"5-3 * * * *",
		"*/0 * * * *",
		"*/60 * * * *",
		"1, * * * *",
		", * * * *",
		"1,,2 * * * *",
		"1- * * * *",
		"a * * * *",
		"* * * FOO *",
		"* * * * MOND",
		"1/ * * * *",
		"1/2/3 * * * *",
		"*-5 * * * *",
		"@",
		"@fortnightly",
		"@every",
		"@every ",
		"@every 0s",
		"@every 5",
		"@every 1.5s",
		"@every 100ms",
		"@every -1s",
		"@every s",
		"@every 9999999999999999999s",
		"@every 8785h",
		"@every 1d",
		"@HOURLY",
		"99999999999999999999 * * * *",
		"* * * * *\n",
		"TZ=UTC * * * * *",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err e = ERR_NONE;
		struct cron c;

		if (cron_parse(view_of(bad[i]), &c, &e) != -EINVAL)
			fail_msg("'%s' was taken for a schedule", bad[i]);
		assert_true(e.msg[0] != '\0');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_moment_is_found),
		cmocka_unit_test(what_never_comes_is_told),
		cmocka_unit_test(any_moment_may_be_asked_for),
		cmocka_unit_test(what_is_no_schedule_is_refused_in_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
