/*
 * codec/toml_scalar.c - strings, numbers and dates of TOML 1.0, to the letter.
 */
#include "codec/toml_scalar.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hex.h"
#include "base/utf8.h"
#include "codec/toml.h"

#define NUMBER_MAX 80 /* characters: more than any number needs */

int toml_error(struct toml_reader *r, const char *fmt, ...)
{
	char why[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return err_set(r->e, -EINVAL, "line %u: %s", r->line, why);
}

static void skip(struct toml_reader *r, size_t n)
{
	r->rest = view_skip(r->rest, n);
}

bool toml_skip_newline(struct toml_reader *r)
{
	if (view_starts(r->rest, VIEW("\n")))
		skip(r, 1);
	else if (view_starts(r->rest, VIEW("\r\n")))
		skip(r, 2);
	else
		return false;
	r->line++;
	return true;
}

/* "\uXXXX" or "\UXXXXXXXX", behind the letter. */
static int read_code_point(struct toml_reader *r, size_t digits, char *to)
{
	uint32_t c = 0;

	if (r->rest.len < digits)
		return toml_error(r, "a \\u or \\U escape is broken off");
	for (size_t i = 0; i < digits; i++) {
		int d = hex_digit(r->rest.p[i]);

		if (d < 0)
			return toml_error(r, "a \\u or \\U escape needs %zu hex digits", digits);
		c = c << 4 | (uint32_t)d;
	}
	if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return toml_error(r, "a \\u or \\U escape is no character");
	skip(r, digits);
	return (int)utf8_format(c, to);
}

static void skip_blanks(struct toml_reader *r)
{
	while (r->rest.len > 0 && (r->rest.p[0] == ' ' || r->rest.p[0] == '\t'))
		skip(r, 1);
}

/* A backslash at a line's end swallows all white space up to the next character. */
static bool skip_line_end(struct toml_reader *r)
{
	struct toml_reader ahead = *r;

	skip_blanks(&ahead);
	if (!toml_skip_newline(&ahead))
		return false;
	do
		skip_blanks(&ahead);
	while (toml_skip_newline(&ahead));
	*r = ahead;
	return true;
}

/* What follows a backslash; returns how many bytes it became. */
static int read_escape(struct toml_reader *r, bool multi_line, char *to)
{
	static const char names[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
	const char *hit;
	char c;

	if (multi_line && skip_line_end(r))
		return 0;
	if (r->rest.len == 0)
		return toml_error(r, "the string is not closed");
	c = r->rest.p[0];
	hit = c ? strchr(names, c) : NULL;
	if (hit) {
		skip(r, 1);
		*to = values[hit - names];
		return 1;
	}
	if (c != 'u' && c != 'U')
		return toml_error(r, "a string holds an unknown escape");
	skip(r, 1);
	return read_code_point(r, c == 'u' ? 4 : 8, to);
}

/* Steps over the closing quotes; up to two more of them belong to a multi-line string. */
static bool skip_close(struct toml_reader *r, char quote, size_t quotes, char *to, size_t *len)
{
	size_t n = 0;

	while (n < r->rest.len && n < quotes + 2 && r->rest.p[n] == quote)
		n++;
	if (quotes == 1)
		n = n > 1 ? 1 : n;
	if (n < quotes)
		return false;
	for (size_t i = quotes; i < n; i++)
		to[(*len)++] = quote;
	skip(r, n);
	return true;
}

/* One character of a string as it stands, or an escape; returns how many bytes it became. */
static int read_char(struct toml_reader *r, char quote, bool multi_line, char *to)
{
	char c = r->rest.p[0];

	if (c == '\\' && quote == '"') {
		skip(r, 1);
		return read_escape(r, multi_line, to);
	}
	if (toml_skip_newline(r)) {
		*to = '\n';
		return multi_line ? 1 : toml_error(r, "a string ends before its line does");
	}
	if (((unsigned char)c < 0x20 && c != '\t') || c == 0x7f)
		return toml_error(r, "a string holds a control character");
	*to = c;
	skip(r, 1);
	return 1;
}

/* How many bytes the string can have at most: up to its closing quotes, and the two beside them. */
static size_t string_bound(struct view v, char quote, struct view close)
{
	size_t i = 0;

	while (i < v.len && !view_starts(view_skip(v, i), close))
		i += v.p[i] == '\\' && quote == '"' ? 2 : 1;
	return i + 2;
}

int toml_read_string(struct toml_reader *r, enum toml_string_flags flags, struct view *ret)
{
	char quote = r->rest.p[0];
	const char three[3] = {quote, quote, quote};
	bool multi_line = view_starts(r->rest, view_mem(three, 3));
	size_t quotes = multi_line ? 3 : 1, len = 0;
	char *to;

	if (multi_line && flags != TOML_MULTI_LINE)
		return toml_error(r, "a key cannot be a multi-line string");
	skip(r, quotes);
	if (multi_line)
		(void)toml_skip_newline(r);
	/* An escape is never shorter than what it stands for. */
	to = arena_alloc(r->arena, string_bound(r->rest, quote, view_mem(three, quotes)));
	if (!to)
		return err_set(r->e, -E2BIG, "line %u: the text is too large", r->line);
	while (!skip_close(r, quote, quotes, to, &len)) {
		int n;

		if (r->rest.len == 0)
			return toml_error(r, "the string is not closed");
		n = read_char(r, quote, multi_line, to + len);
		if (n < 0)
			return n;
		len += (size_t)n;
	}
	*ret = view_mem(to, len);
	return 0;
}

static bool is_bare_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("+-_.:", c));
}

/* The characters of a number, boolean or date. */
static struct view bare_token(struct view v)
{
	size_t n = 0;

	while (n < v.len && is_bare_char(v.p[n]))
		n++;
	return view_first(v, n);
}

/* Two decimal digits within a range at `at`. */
static bool two_digits(struct view v, size_t at, int min, int max)
{
	int n;

	if (at + 2 > v.len || (unsigned char)(v.p[at] - '0') > 9 ||
	    (unsigned char)(v.p[at + 1] - '0') > 9)
		return false;
	n = (v.p[at] - '0') * 10 + v.p[at + 1] - '0';
	return n >= min && n <= max;
}

/* YYYY-MM-DD at the front, with days that the month has. */
static bool is_date(struct view v)
{
	static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int year, month;
	bool leap;

	if (!two_digits(v, 0, 0, 99) || !two_digits(v, 2, 0, 99) || !two_digits(v, 5, 1, 12) ||
	    v.len < 10 || v.p[4] != '-' || v.p[7] != '-')
		return false;
	year = (v.p[0] - '0') * 1000 + (v.p[1] - '0') * 100 + (v.p[2] - '0') * 10 + v.p[3] - '0';
	month = (v.p[5] - '0') * 10 + v.p[6] - '0';
	leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return two_digits(v, 8, 1, month == 2 && !leap ? 28 : days[month - 1]);
}

/* HH:MM:SS with an optional fraction at the front; returns its length or 0. */
static size_t time_len(struct view v)
{
	size_t n = 8;

	if (!two_digits(v, 0, 0, 23) || !two_digits(v, 3, 0, 59) || !two_digits(v, 6, 0, 59) ||
	    v.p[2] != ':' || v.p[5] != ':')
		return 0;
	if (n == v.len || v.p[n] != '.')
		return n;
	for (n++; n < v.len && v.p[n] >= '0' && v.p[n] <= '9'; n++)
		;
	return n > 9 ? n : 0;
}

static bool is_zone(struct view v)
{
	if (view_iis(v, "z"))
		return true;
	return v.len == 6 && (v.p[0] == '+' || v.p[0] == '-') && two_digits(v, 1, 0, 23) &&
	       v.p[3] == ':' && two_digits(v, 4, 0, 59);
}

/* A date, a time, or both with or without a zone. */
static bool is_datetime(struct view v)
{
	size_t n;

	if (!is_date(v))
		return time_len(v) == v.len && v.len > 0;
	if (v.len == 10)
		return true;
	if (v.p[10] != 'T' && v.p[10] != 't' && v.p[10] != ' ')
		return false;
	v = view_skip(v, 11);
	n = time_len(v);
	return n > 0 && (n == v.len || is_zone(view_skip(v, n)));
}

/* Copies a number without its underscores, each of which must stand between two digits. */
static bool strip_underscores(struct view v, char to[NUMBER_MAX])
{
	size_t len = 0;

	if (v.len >= NUMBER_MAX)
		return false;
	for (size_t i = 0; i < v.len; i++) {
		if (v.p[i] != '_')
			to[len++] = v.p[i];
		else if (i == 0 || i + 1 == v.len || hex_digit(v.p[i - 1]) < 0 ||
			 hex_digit(v.p[i + 1]) < 0)
			return false;
	}
	to[len] = '\0';
	return true;
}

/* Digits of a base that fit; `negative` decides which end of the range counts. */
static bool parse_digits(const char *s, int base, bool negative, int64_t *ret)
{
	uint64_t n = 0, max = (uint64_t)INT64_MAX + negative;

	if (!*s)
		return false;
	for (; *s; s++) {
		int d = hex_digit(*s);

		if (d < 0 || d >= base || n > (max - (uint64_t)d) / (uint64_t)base)
			return false;
		n = n * (uint64_t)base + (uint64_t)d;
	}
	*ret = negative ? (int64_t)(0 - n) : (int64_t)n;
	return true;
}

static bool parse_int(const char *s, int64_t *ret)
{
	static const struct {
		const char *prefix;
		int base;
	} bases[] = {{"0x", 16}, {"0o", 8}, {"0b", 2}};
	bool sign = *s == '-' || *s == '+', negative = *s == '-';

	for (size_t i = 0; i < ARRAY_LEN(bases); i++)
		if (strncmp(s, bases[i].prefix, 2) == 0)
			return parse_digits(s + 2, bases[i].base, false, ret);
	s += sign;
	if (s[0] == '0' && s[1])
		return false;
	return parse_digits(s, 10, negative, ret);
}

static const char *skip_digits(const char *s)
{
	while (*s >= '0' && *s <= '9')
		s++;
	return s;
}

/* Digits, then a fraction or an exponent or both; strtod() alone would take far more. */
static bool parse_float(const char *s, double *ret)
{
	const char *unsigned_s = s + (*s == '-' || *s == '+'), *end, *mark;

	if (strcmp(unsigned_s, "inf") == 0 || strcmp(unsigned_s, "nan") == 0) {
		*ret = *unsigned_s == 'i' ? (*s == '-' ? -INFINITY : INFINITY) : NAN;
		return true;
	}
	end = mark = skip_digits(unsigned_s);
	if (end == unsigned_s || (unsigned_s[0] == '0' && end > unsigned_s + 1))
		return false;
	if (*end == '.') {
		end = skip_digits(end + 1);
		if (end == mark + 1)
			return false;
	}
	if (*end == 'e' || *end == 'E') {
		const char *digits = end + 1 + (end[1] == '-' || end[1] == '+');

		end = skip_digits(digits);
		if (end == digits)
			return false;
	}
	if (*end || end == mark)
		return false;
	*ret = strtod(s, NULL);
	return true;
}

int toml_read_bare(struct toml_reader *r, struct toml *ret)
{
	struct view token = bare_token(r->rest);
	struct view time = view_skip(r->rest, token.len + 1);
	char number[NUMBER_MAX];

	/* The only value with a space in it: a date, then a time. */
	if (token.len == 10 && is_date(token) && view_starts(view_skip(r->rest, 10), VIEW(" ")) &&
	    two_digits(time, 0, 0, 99))
		token = view_first(r->rest, 11 + bare_token(time).len);
	ret->text = token;
	if (view_is(token, "true") || view_is(token, "false")) {
		ret->kind = TOML_BOOL;
		ret->boolean = token.p[0] == 't';
	} else if (is_datetime(token)) {
		ret->kind = TOML_DATETIME;
	} else if (!strip_underscores(token, number)) {
		return toml_error(r, "a value is no number");
	} else if (parse_int(number, &ret->integer)) {
		ret->kind = TOML_INT;
	} else if (!view_has(token, 'x') && parse_float(number, &ret->real)) {
		ret->kind = TOML_FLOAT;
	} else if (token.len == 0) {
		return toml_error(r, "a value is missing");
	} else {
		return toml_error(r, "'" VIEW_FMT "' is no value", VIEW_ARG(view_first(token, 40)));
	}
	skip(r, token.len);
	return 0;
}
