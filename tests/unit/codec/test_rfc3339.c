/*
 * test_rfc3339.c - points in time as text.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "codec/rfc3339.h"

#define S(n) ((int64_t)(n)*1000000000)

static void reads_points_in_time(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} cases[] = {
		{"1970-01-01T00:00:00Z", 0},
		{"1970-01-01t00:00:00z", 0},
		{"1970-01-01 00:00:00", 0},
		{"1970-01-01T00:00:00.5Z", 500000000},
		{"1970-01-01T00:00:00.123456789Z", 123456789},
		{"1970-01-01T00:00:00.1234567899999Z", 123456789},
		{"1969-12-31T23:59:59.75Z", -250000000},
		{"1970-01-01T01:00:00+01:00", 0},
		{"1969-12-31T19:30:00-04:30", 0},
		{"1970-01-01T00:00:00-00:00", 0},
		{"2000-02-29T12:00:00Z", S(951825600)},
		{"2024-02-29T23:59:59.000000001+00:00", S(1709251199) + 1},
		{"2016-12-31T23:59:60Z", S(1483228800)},
		{"2017-01-01T00:59:60+01:00", S(1483228800)},
		{"2262-04-11T23:47:16.854775807Z", INT64_MAX},
		{"1677-09-21T00:12:43.145224192Z", INT64_MIN},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t ns = 42;

		if (!rfc3339_parse(view_of(cases[i].text), &ns) || ns != cases[i].ns)
			fail_msg("%s: %jd", cases[i].text, (intmax_t)ns);
	}
}

static void refuses_what_is_no_point_in_time(void **state)
{
	static const struct view cases[] = {
		VIEW(""),
		VIEW("1970"),
		VIEW("1970-01-01"),
		VIEW("1970-01-01T"),
		VIEW("1970-01-01T00:00"),
		VIEW("1970-01-01T00:00:00."),
		VIEW("1970-01-01T00:00:00.Z"),
		VIEW("1970-01-01T00:00:00,5Z"),
		VIEW("1970-01-01T00:00:00ZZ"),
		VIEW("1970-01-01T00:00:00Z "),
		VIEW("1970-01-01T00:00:00+0100"),
		VIEW("1970-01-01T00:00:00+01"),
		VIEW("1970-01-01T00:00:00+24:00"),
		VIEW("1970-01-01T00:00:00+01:60"),
		VIEW("1970-01-01T00:00:00\0"),
		VIEW("1970-01-01\0"
		     "00:00:00Z"),
		VIEW("1970-1-01T00:00:00Z"),
		VIEW("70-01-01T00:00:00Z"),
		VIEW("+1970-01-01T00:00:00Z"),
		VIEW("1970-00-01T00:00:00Z"),
		VIEW("1970-13-01T00:00:00Z"),
		VIEW("1970-01-00T00:00:00Z"),
		VIEW("1970-01-32T00:00:00Z"),
		VIEW("1970-04-31T00:00:00Z"),
		VIEW("1900-02-29T00:00:00Z"),
		VIEW("2023-02-29T00:00:00Z"),
		VIEW("1970-01-01T24:00:00Z"),
		VIEW("1970-01-01T00:60:00Z"),
		VIEW("1970-01-01T00:00:61Z"),
		VIEW("1970-01-01T00:00:60Z"),
		VIEW("2016-12-31T23:59:60+01:00"),
		VIEW("2262-04-11T23:47:16.854775808Z"),
		VIEW("1677-09-21T00:12:43.145224191Z"),
		VIEW("9999-12-31T23:59:59Z"),
		VIEW("0000-01-01T00:00:00Z"),
		VIEW("0000-01-01T00:00:60+23:59"),
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t ns;

		if (rfc3339_parse(cases[i], &ns))
			fail_msg("accepted: " VIEW_FMT, VIEW_ARG(cases[i]));
	}
}

static void writes_the_shortest_exact_text(void **state)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{0, "1970-01-01T00:00:00Z"},
		{1, "1970-01-01T00:00:00.000000001Z"},
		{-1, "1969-12-31T23:59:59.999999999Z"},
		{S(1) + 500000000, "1970-01-01T00:00:01.5Z"},
		{S(1709164800) + 120000, "2024-02-29T00:00:00.00012Z"},
		{INT64_MAX, "2262-04-11T23:47:16.854775807Z"},
		{INT64_MIN, "1677-09-21T00:12:43.145224192Z"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[RFC3339_MAX];

		rfc3339_format(cases[i].ns, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void agrees_with_the_c_library_on_every_day(void **state)
{
	/* 1678 to 2261, and a second that moves through the day. */
	for (int64_t day = -106600; day < 106600; day++) {
		time_t s = day * 86400 + (day * 7919 % 86400 + 86400) % 86400;
		char ours[RFC3339_MAX], theirs[RFC3339_MAX];
		struct tm tm;
		int64_t back;

		gmtime_r(&s, &tm);
		strftime(theirs, sizeof(theirs), "%Y-%m-%dT%H:%M:%SZ", &tm);
		rfc3339_format(S(s), ours);
		assert_string_equal(ours, theirs);
		assert_true(rfc3339_parse(view_of(ours), &back) && back == S(s));

		strftime(theirs, sizeof(theirs), "%a, %d %b %Y %H:%M:%S GMT", &tm);
		rfc3339_format_http(s, ours);
		assert_string_equal(ours, theirs);
		assert_true(rfc3339_parse_http(view_of(ours), &back) && back == s);
	}
}

static void reads_all_three_dates_of_http(void **state)
{
	static const char *const same[] = {
		"Sun, 06 Nov 1994 08:49:37 GMT",
		"Sunday, 06-Nov-94 08:49:37 GMT",
		"Sun Nov  6 08:49:37 1994",
	};
	static const char *const bad[] = {
		"",
		"Sun",
		"Mon, 06 Nov 1994 08:49:37 GMT",
		"Sun, 06 Nov 1994 08:49:37",
		"Sun, 06 Nov 1994 08:49:37 UTC",
		"Sun, 6 Nov 1994 08:49:37 GMT",
		"Sun, 06 nov 1994 08:49:37 GMT",
		"Sun, 06 Nov 94 08:49:37 GMT",
		"Sun,06 Nov 1994 08:49:37 GMT",
		"Sunday, 06 Nov 1994 08:49:37 GMT",
		"Sun, 06-Nov-94 08:49:37 GMT",
		"Sun, 31 Feb 1994 08:49:37 GMT",
		"Sun, 06 Nov 1994 24:49:37 GMT",
		"Sun Nov  6 08:49:37 1994 GMT",
		"Sun Nov 6 08:49:37 1994",
	};
	char text[RFC3339_MAX];
	int64_t s;

	for (size_t i = 0; i < ARRAY_LEN(same); i++)
		assert_true(rfc3339_parse_http(view_of(same[i]), &s) && s == 784111777);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (rfc3339_parse_http(view_of(bad[i]), &s))
			fail_msg("accepted: %s", bad[i]);
	rfc3339_format_http(784111777, text);
	assert_string_equal(text, same[0]);
	rfc3339_format_http(INT64_MAX, text);
	assert_string_equal(text, "Fri, 31 Dec 9999 23:59:59 GMT");
	rfc3339_format_http(INT64_MIN, text);
	assert_string_equal(text, "Sat, 01 Jan 0000 00:00:00 GMT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_points_in_time),
		cmocka_unit_test(refuses_what_is_no_point_in_time),
		cmocka_unit_test(writes_the_shortest_exact_text),
		cmocka_unit_test(agrees_with_the_c_library_on_every_day),
		cmocka_unit_test(reads_all_three_dates_of_http),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
