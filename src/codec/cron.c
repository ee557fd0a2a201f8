/*
 * codec/cron.c - schedules as sets of bits, and the next moment that is in all of them.
 */
#include "codec/cron.h"

#include <errno.h>
#include <stddef.h>

#include "base/err.h"
#include "base/num.h"

#define DAY_S	    86400
#define DAY_MINUTES 1440
#define MOMENT_MAX  253402300799 /* the last second of 9999 */
#define YEARS_MAX   5
#define EVERY_MAX   (366ULL * DAY_S)
#define TEXT_SHOWN  64

struct field {
	const char *name;
	const char *const *words; /* names of the values from `min` on, or NULL */
	uint32_t min, max;
};

static const char *const month_words[] = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
					  "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
static const char *const day_words[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS_ };

static const struct field fields[FIELDS_] = {
	[MINUTE] = {"minute", NULL, 0, 59},
	[HOUR] = {"hour", NULL, 0, 23},
	[DAY] = {"day of the month", NULL, 1, 31},
	[MONTH] = {"month", month_words, 1, 12},
	[WEEKDAY] = {"day of the week", day_words, 0, 7},
};

static const struct {
	const char *name, *fields;
} descriptors[] = {
	{"@hourly", "0 * * * *"},   {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
	{"@weekly", "0 0 * * 0"},   {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
	{"@annually", "0 0 1 1 *"},
};

/* ---- reading ---- */

static bool parse_value(const struct field *f, struct view text, uint32_t *ret)
{
	size_t words_n = f->max == 12 ? ARRAY_LEN(month_words) : ARRAY_LEN(day_words);

	for (size_t i = 0; f->words && i < words_n; i++)
		if (view_iis(text, f->words[i])) {
			*ret = f->min + (uint32_t)i;
			return true;
		}
	return num_parse_u32(text, ret) && *ret >= f->min && *ret <= f->max;
}

/* "*", "?", "3", "3-7", each maybe with "/2" behind it; "3/2" goes up to the end. */
static bool parse_part(const struct field *f, struct view text, uint64_t *bits)
{
	size_t slash = view_find(text, '/');
	struct view range = view_first(text, slash), step_text = view_skip(text, slash + 1);
	size_t dash = view_find(range, '-');
	uint32_t from = f->min, to = f->max, step = 1;

	if (slash < text.len && (!num_parse_u32(step_text, &step) || step == 0 || step > f->max))
		return false;
	if (view_is(range, "*") || view_is(range, "?")) {
		if (f->max == 7)
			to = 6;
	} else {
		if (!parse_value(f, view_first(range, dash), &from))
			return false;
		if (dash < range.len) {
			if (!parse_value(f, view_skip(range, dash + 1), &to))
				return false;
		} else if (slash == text.len) {
			to = from;
		} else if (f->max == 7) {
			to = 6;
		}
	}
	if (from > to)
		return false;
	for (uint32_t v = from; v <= to; v += step)
		*bits |= 1ULL << v;
	return true;
}

static int parse_field(const struct field *f, struct view text, uint64_t *ret, bool *ret_any,
		       struct err *e)
{
	struct view rest = text, part;
	uint64_t bits = 0;

	*ret_any = view_is(text, "*") || view_is(text, "?");
	while (view_split(&rest, ',', &part))
		if (!parse_part(f, part, &bits))
			return err_set(e, -EINVAL, "'" VIEW_FMT "' is no %s",
				       VIEW_ARG(view_first(text, TEXT_SHOWN)), f->name);
	/* "1," has an empty part that splitting does not show. */
	if (bits == 0 || text.p[text.len - 1] == ',')
		return err_set(e, -EINVAL, "'" VIEW_FMT "' is no %s",
			       VIEW_ARG(view_first(text, TEXT_SHOWN)), f->name);
	*ret = bits;
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct view next_word(struct view *rest)
{
	size_t n = 0;
	struct view word;

	*rest = view_trim(*rest);
	while (n < rest->len && !is_blank(rest->p[n]))
		n++;
	word = view_first(*rest, n);
	*rest = view_skip(*rest, n);
	return word;
}

static int parse_fields(struct view text, struct cron *ret, struct err *e)
{
	struct view rest = text;
	uint64_t bits[FIELDS_];
	bool any[FIELDS_];

	for (size_t i = 0; i < FIELDS_; i++) {
		struct view word = next_word(&rest);

		if (word.len == 0)
			return err_set(e, -EINVAL, "a schedule has five fields, this one has %zu",
				       i);
		if (parse_field(&fields[i], word, &bits[i], &any[i], e) < 0)
			return e->code;
	}
	if (view_trim(rest).len > 0)
		return err_set(e, -EINVAL, "a schedule has five fields, this one has more");
	*ret = (struct cron){
		.minutes = bits[MINUTE],
		.hours = (uint32_t)bits[HOUR],
		.days = (uint32_t)bits[DAY],
		.months = (uint32_t)bits[MONTH],
		/* 7 is Sunday too */
		.weekdays = (uint8_t)((bits[WEEKDAY] | bits[WEEKDAY] >> 7) & 0x7f),
		.any_day = any[DAY],
		.any_weekday = any[WEEKDAY],
	};
	return 0;
}

/* "90s", "1m30s", "2h": numbers with units, the larger ones first or not. */
static int parse_every(struct view text, struct cron *ret, struct err *e)
{
	struct view rest = view_trim(text);
	uint64_t total = 0;

	while (rest.len > 0) {
		size_t digits = 0;
		uint64_t n, unit;

		while (digits < rest.len && rest.p[digits] >= '0' && rest.p[digits] <= '9')
			digits++;
		if (digits == rest.len || !num_parse_u64(view_first(rest, digits), &n))
			break;
		unit = rest.p[digits] == 's' ? 1 : rest.p[digits] == 'm' ? 60 : 3600;
		if (unit == 3600 && rest.p[digits] != 'h')
			break;
		if (n > EVERY_MAX)
			break;
		total += n * unit;
		rest = view_skip(rest, digits + 1);
		if (total > EVERY_MAX)
			break;
	}
	if (rest.len > 0 || total == 0 || total > EVERY_MAX)
		return err_set(e, -EINVAL,
			       "'@every " VIEW_FMT
			       "' is no time of whole seconds like 90s or 1m30s",
			       VIEW_ARG(view_first(text, TEXT_SHOWN)));
	*ret = (struct cron){.every_s = total};
	return 0;
}

int cron_parse(struct view text, struct cron *ret, struct err *e)
{
	text = view_trim(text);
	if (view_starts(text, VIEW("@every ")))
		return parse_every(view_skip(text, 7), ret, e);
	for (size_t i = 0; i < ARRAY_LEN(descriptors); i++)
		if (view_is(text, descriptors[i].name))
			return parse_fields(view_of(descriptors[i].fields), ret, e);
	if (text.len > 0 && text.p[0] == '@')
		return err_set(e, -EINVAL, "'" VIEW_FMT "' is no schedule",
			       VIEW_ARG(view_first(text, TEXT_SHOWN)));
	return parse_fields(text, ret, e);
}

/* ---- the next moment ---- */

struct date {
	int64_t year;
	unsigned month, day; /* from 1 on */
};

static bool is_leap(int64_t year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static unsigned month_days(int64_t year, unsigned month)
{
	static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return month == 2 && is_leap(year) ? 29 : days[month - 1];
}

/* Days since 1970-01-01, counted in years that begin in March: leap days are at their ends. */
static int64_t days_of(struct date d)
{
	int64_t year = d.month <= 2 ? d.year - 1 : d.year;
	int64_t era = (year >= 0 ? year : year - 399) / 400;
	int64_t of_era = year - era * 400;
	int64_t of_year = (153 * ((int64_t)d.month + (d.month > 2 ? -3 : 9)) + 2) / 5 + d.day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static struct date date_of(int64_t days)
{
	struct date d = {.year = 1970 + days / 366, .month = 1, .day = 1};

	/* The guess is a little too early: some years too few by now, never too many. */
	while (days_of((struct date){d.year + 1, 1, 1}) <= days)
		d.year++;
	while (days_of((struct date){d.year, d.month, month_days(d.year, d.month)}) < days)
		d.month++;
	d.day = (unsigned)(days - days_of(d)) + 1;
	return d;
}

/* With both kinds of days given, either will do; that is how cron has always read them. */
static bool day_matches(const struct cron *c, struct date d, int64_t days)
{
	bool day = c->days >> d.day & 1;
	bool weekday = c->weekdays >> ((days % 7 + 7 + 4) % 7) & 1;

	if (c->any_day || c->any_weekday)
		return day && weekday;
	return day || weekday;
}

/* The first set bit from `from` on, or -1. */
static int bit_from(uint64_t bits, unsigned from)
{
	bits = from < 64 ? bits >> from << from : 0;
	return bits ? __builtin_ctzll(bits) : -1;
}

/* The first minute of the day from `minute` on, or -1. */
static int minute_from(const struct cron *c, unsigned minute)
{
	int hour = bit_from(c->hours, minute / 60);
	int in_hour;

	if (hour < 0)
		return -1;
	in_hour = bit_from(c->minutes, (unsigned)hour == minute / 60 ? minute % 60 : 0);
	if (in_hour < 0) {
		hour = bit_from(c->hours, (unsigned)hour + 1);
		in_hour = bit_from(c->minutes, 0);
	}
	return hour < 0 || in_hour < 0 ? -1 : hour * 60 + in_hour;
}

static void next_day(struct date *d)
{
	if (++d->day <= month_days(d->year, d->month))
		return;
	d->day = 1;
	d->month = d->month % 12 + 1;
	d->year += d->month == 1;
}

int64_t cron_next(const struct cron *c, int64_t after_s)
{
	int64_t after = MIN(MAX(after_s, (int64_t)0), MOMENT_MAX);
	int64_t minutes = after / 60 + 1, days = minutes / DAY_MINUTES, last_year;
	int minute = minute_from(c, (unsigned)(minutes % DAY_MINUTES));
	struct date d = date_of(days);

	if (c->every_s > 0)
		return after + (int64_t)c->every_s;
	last_year = d.year + YEARS_MAX;
	while (d.year <= last_year) {
		bool in_month = c->months >> d.month & 1;

		if (in_month && minute >= 0 && day_matches(c, d, days))
			return days * DAY_S + minute * 60;
		if (!in_month) { /* on to its last day */
			days += month_days(d.year, d.month) - d.day;
			d.day = month_days(d.year, d.month);
		}
		next_day(&d);
		days++;
		minute = minute_from(c, 0);
	}
	return 0;
}
