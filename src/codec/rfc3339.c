/*
 * codec/rfc3339.c - points in time as text: RFC 3339, and the three dates of HTTP (RFC
 * 9110, 5.6.7).
 *
 * The proleptic Gregorian calendar, counted in days since 1970; no zones but UTC, no clock.
 */
#include "codec/rfc3339.h"

#include <stdio.h>

#include "base/macro.h"

#define NS_PER_S  1000000000
#define S_PER_DAY 86400

struct moment {
	int year, month, day; /* month and day from 1 */
	int hour, minute, second;
};

static const char *const month_names[12] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
					    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
/* 1970-01-01 was a Thursday. */
static const char *const day_names[7] = {"Thursday", "Friday",	"Saturday", "Sunday",
					 "Monday",   "Tuesday", "Wednesday"};

static bool is_leap(int year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in_month(int year, int month)
{
	static const int days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return days[month - 1] + (month == 2 && is_leap(year) ? 1 : 0);
}

/* Days from 0000-01-01 to the first day of `year` (0 or more). */
static int64_t days_before_year(int64_t year)
{
	return year == 0 ? 0
			 : 365 * year + (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400 + 1;
}

#define EPOCH_DAYS 719528 /* days_before_year(1970) */

static int64_t to_days(int year, int month, int day)
{
	int64_t days = days_before_year(year) - EPOCH_DAYS;

	for (int m = 1; m < month; m++)
		days += days_in_month(year, m);
	return days + day - 1;
}

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0 ? 1 : 0);
}

static struct moment from_seconds(int64_t unix_s)
{
	int64_t day_n = floor_div(unix_s, S_PER_DAY), days = day_n + EPOCH_DAYS;
	int second = (int)(unix_s - day_n * S_PER_DAY);
	/* At most one off: 400 years have 146,097 days. */
	int64_t year = days * 400 / 146097;
	struct moment t = {.month = 1};

	while (days_before_year(year + 1) <= days)
		year++;
	while (days_before_year(year) > days)
		year--;
	t.year = (int)year;
	t.day = (int)(days - days_before_year(year)) + 1;
	while (t.day > days_in_month(t.year, t.month))
		t.day -= days_in_month(t.year, t.month++);
	t.hour = second / 3600;
	t.minute = second / 60 % 60;
	t.second = second % 60;
	return t;
}

/* Exactly `n` digits off the front. */
static bool take_digits(struct view *v, size_t n, int *ret)
{
	int value = 0;

	if (v->len < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (v->p[i] < '0' || v->p[i] > '9')
			return false;
		value = value * 10 + (v->p[i] - '0');
	}
	*v = view_skip(*v, n);
	*ret = value;
	return true;
}

/* One of the characters off the front. */
static bool take_one(struct view *v, const char *chars)
{
	if (v->len == 0 || v->p[0] == '\0' || !strchr(chars, v->p[0]))
		return false;
	*v = view_skip(*v, 1);
	return true;
}

static bool take_time(struct view *v, struct moment *t)
{
	return take_digits(v, 2, &t->hour) && take_one(v, ":") && take_digits(v, 2, &t->minute) &&
	       take_one(v, ":") && take_digits(v, 2, &t->second) && t->hour <= 23 &&
	       t->minute <= 59 && t->second <= 60;
}

static bool date_ok(const struct moment *t)
{
	return t->month >= 1 && t->month <= 12 && t->day >= 1 &&
	       t->day <= days_in_month(t->year, t->month);
}

static int64_t to_seconds(const struct moment *t)
{
	return to_days(t->year, t->month, t->day) * S_PER_DAY + t->hour * 3600 + t->minute * 60 +
	       t->second;
}

/* An optional ".digits": nanoseconds; what is finer is cut off. */
static bool take_fraction(struct view *v, int64_t *ret_ns)
{
	int64_t ns = 0, scale = NS_PER_S / 10;
	size_t n = 0;

	*ret_ns = 0;
	if (!take_one(v, "."))
		return true;
	for (; n < v->len && v->p[n] >= '0' && v->p[n] <= '9'; n++, scale /= 10)
		ns += (v->p[n] - '0') * scale;
	*v = view_skip(*v, n);
	*ret_ns = ns;
	return n > 0;
}

/* "Z", "+hh:mm", "-hh:mm" or nothing: seconds east of UTC. */
static bool take_zone(struct view *v, int *ret_offset_s)
{
	int hour, minute, sign;

	*ret_offset_s = 0;
	if (v->len == 0 || take_one(v, "Zz"))
		return true;
	sign = v->p[0] == '-' ? -1 : 1;
	if (!take_one(v, "+-") || !take_digits(v, 2, &hour) || !take_one(v, ":") ||
	    !take_digits(v, 2, &minute) || hour > 23 || minute > 59)
		return false;
	*ret_offset_s = sign * (hour * 3600 + minute * 60);
	return true;
}

/* A second 60 exists only at the end of a month, in UTC; it counts as the second after it. */
static bool leap_second_ok(const struct moment *t, int64_t unix_s)
{
	struct moment utc;

	if (t->second < 60)
		return true;
	utc = from_seconds(unix_s);
	return utc.day == 1 && utc.hour == 0 && utc.minute == 0 && utc.second == 0;
}

bool rfc3339_parse(struct view text, int64_t *ret_unix_ns)
{
	struct moment t;
	int64_t s, ns;
	int offset;

	if (!take_digits(&text, 4, &t.year) || !take_one(&text, "-") ||
	    !take_digits(&text, 2, &t.month) || !take_one(&text, "-") ||
	    !take_digits(&text, 2, &t.day) || !take_one(&text, "Tt ") || !take_time(&text, &t))
		return false;
	if (!take_fraction(&text, &ns) || !take_zone(&text, &offset) || text.len > 0)
		return false;
	if (!date_ok(&t))
		return false;
	s = to_seconds(&t) - offset;
	if (!leap_second_ok(&t, s))
		return false;
	/* Before 1970 the fraction still counts forward; borrow it so that no step overflows. */
	if (s < 0 && ns > 0) {
		s++;
		ns -= NS_PER_S;
	}
	if (__builtin_mul_overflow(s, (int64_t)NS_PER_S, &s) || __builtin_add_overflow(s, ns, &s))
		return false;
	*ret_unix_ns = s;
	return true;
}

void rfc3339_format(int64_t unix_ns, char ret[RFC3339_MAX])
{
	int64_t s = floor_div(unix_ns, NS_PER_S);
	int64_t ns = unix_ns % NS_PER_S;
	struct moment t = from_seconds(s);
	int n;

	if (ns < 0)
		ns += NS_PER_S;
	n = snprintf(ret, RFC3339_MAX, "%04d-%02d-%02dT%02d:%02d:%02d", t.year, t.month, t.day,
		     t.hour, t.minute, t.second);
	if (ns > 0) {
		n += snprintf(ret + n, RFC3339_MAX - (size_t)n, ".%09d", (int)ns);
		while (ret[n - 1] == '0')
			n--;
	}
	ret[n] = 'Z';
	ret[n + 1] = '\0';
}

static const char *weekday(int64_t unix_s)
{
	int64_t days = floor_div(unix_s, S_PER_DAY);

	return day_names[((days % 7) + 7) % 7];
}

void rfc3339_format_http(int64_t unix_s, char ret[RFC3339_MAX])
{
	/* Four digits hold no year beyond these. */
	int64_t min = to_days(0, 1, 1) * S_PER_DAY, max = to_days(10000, 1, 1) * S_PER_DAY - 1;
	struct moment t;

	unix_s = unix_s < min ? min : unix_s > max ? max : unix_s;
	t = from_seconds(unix_s);
	snprintf(ret, RFC3339_MAX, "%.3s, %02d %s %04d %02d:%02d:%02d GMT", weekday(unix_s), t.day,
		 month_names[t.month - 1], t.year, t.hour, t.minute, t.second);
}

static bool take_month_name(struct view *v, int *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(month_names); i++)
		if (view_starts(*v, view_of(month_names[i]))) {
			*v = view_skip(*v, 3);
			*ret = (int)i + 1;
			return true;
		}
	return false;
}

static bool take_text(struct view *v, const char *text)
{
	if (!view_starts(*v, view_of(text)))
		return false;
	*v = view_skip(*v, strlen(text));
	return true;
}

/* "06 Nov 1994 08:49:37 GMT" */
static bool parse_fixdate(struct view v, struct moment *t)
{
	return take_digits(&v, 2, &t->day) && take_text(&v, " ") &&
	       take_month_name(&v, &t->month) && take_text(&v, " ") &&
	       take_digits(&v, 4, &t->year) && take_text(&v, " ") && take_time(&v, t) &&
	       view_is(v, " GMT");
}

/* "06-Nov-94 08:49:37 GMT"; without a clock, 70 to 99 are of the last century. */
static bool parse_rfc850(struct view v, struct moment *t)
{
	if (!take_digits(&v, 2, &t->day) || !take_text(&v, "-") ||
	    !take_month_name(&v, &t->month) || !take_text(&v, "-") || !take_digits(&v, 2, &t->year))
		return false;
	t->year += t->year < 70 ? 2000 : 1900;
	return take_text(&v, " ") && take_time(&v, t) && view_is(v, " GMT");
}

/* "Nov  6 08:49:37 1994" */
static bool parse_asctime(struct view v, struct moment *t)
{
	if (!take_month_name(&v, &t->month) || !take_text(&v, " "))
		return false;
	if (!take_digits(&v, 2, &t->day) && !(take_text(&v, " ") && take_digits(&v, 1, &t->day)))
		return false;
	return take_text(&v, " ") && take_time(&v, t) && take_text(&v, " ") &&
	       take_digits(&v, 4, &t->year) && v.len == 0;
}

/* Short names stand before ", " (fixdate) and " " (asctime), long ones before ", " (RFC 850). */
static bool parse_http_day(struct view text, const char *day, struct moment *t)
{
	struct view rest = text;

	if (take_text(&rest, day) && take_text(&rest, ", "))
		return parse_rfc850(rest, t);
	rest = view_skip(text, 3);
	if (take_text(&rest, ", "))
		return parse_fixdate(rest, t);
	return take_text(&rest, " ") && parse_asctime(rest, t);
}

bool rfc3339_parse_http(struct view text, int64_t *ret_unix_s)
{
	for (size_t i = 0; i < ARRAY_LEN(day_names); i++) {
		struct moment t;
		int64_t s;

		if (!view_starts(text, view_first(view_of(day_names[i]), 3)))
			continue;
		if (!parse_http_day(text, day_names[i], &t) || !date_ok(&t))
			return false;
		s = to_seconds(&t);
		if (weekday(s - (t.second == 60 ? 1 : 0)) != day_names[i] || !leap_second_ok(&t, s))
			return false;
		*ret_unix_s = s;
		return true;
	}
	return false;
}
