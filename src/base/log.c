/*
 * base/log.c - one line per event: JSON lines, or logfmt on a terminal.
 *
 * A line is built in a fixed buffer and leaves with one write(2), so lines of several
 * processes never mix.  What does not fit is cut, yet the line always stays well-formed.
 */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"

#define LINE_MAX_BYTES	8192
#define VALUE_MAX_BYTES 2048
#define TAIL_BYTES	64 /* kept free: whatever was opened can always be closed */

struct line {
	size_t len;
	char text[LINE_MAX_BYTES];
};

static struct {
	const char *prog;
	enum log_level level;
	int fd;
	bool tty;
} state = {"", LOG_INFO, STDERR_FILENO, false};

static const char *const level_name[LOG_LEVELS_] = {
	[LOG_ERROR] = "error",
	[LOG_WARN] = "warn",
	[LOG_INFO] = "info",
	[LOG_DEBUG] = "debug",
};

void log_init(const char *prog, enum log_level level, int fd)
{
	state.prog = prog;
	state.level = level;
	state.fd = fd;
	state.tty = isatty(fd) == 1;
}

void log_set_level(enum log_level level)
{
	state.level = level;
}

bool log_enabled(enum log_level level)
{
	return level <= state.level;
}

static void put(struct line *l, struct view v)
{
	size_t n = MIN(v.len, sizeof(l->text) - l->len);

	if (n > 0)
		memcpy(l->text + l->len, v.p, n);
	l->len += n;
}

/* One character of a quoted string; whatever is not printable is escaped. */
static void put_char(struct line *l, uint32_t c, struct view raw)
{
	char esc[8];

	if (c == '"' || c == '\\') {
		put(l, VIEW("\\"));
		put(l, raw);
	} else if (c == '\n') {
		put(l, VIEW("\\n"));
	} else if (c == '\t') {
		put(l, VIEW("\\t"));
	} else if (c < ' ' || (c >= 0x7f && c < 0xa0)) {
		(void)snprintf(esc, sizeof(esc), "\\u%04x", (unsigned)c);
		put(l, view_of(esc));
	} else {
		put(l, raw);
	}
}

static void put_quoted(struct line *l, struct view v)
{
	size_t limit = MIN(l->len + VALUE_MAX_BYTES, sizeof(l->text) - TAIL_BYTES);

	put(l, VIEW("\""));
	while (v.len > 0) {
		uint32_t c = 0;
		int n = utf8_next(v, &c);

		if (l->len >= limit) {
			put(l, VIEW("..."));
			break;
		}
		if (n > 0)
			put_char(l, c, view_first(v, (size_t)n));
		else
			put(l, VIEW("\xef\xbf\xbd"));
		v = view_skip(v, n == 0 ? v.len : (size_t)(n > 0 ? n : -n));
	}
	put(l, VIEW("\""));
}

/* A bare word needs no quotes in logfmt. */
static bool is_word(struct view v)
{
	for (size_t i = 0; i < v.len; i++)
		if (v.p[i] <= ' ' || v.p[i] == '"' || v.p[i] == '=' || v.p[i] == '\\' ||
		    v.p[i] == 0x7f)
			return false;
	return v.len > 0 && v.len < 256;
}

static void put_name(struct line *l, const char *name)
{
	if (state.tty) {
		put(l, l->len > 0 ? VIEW(" ") : VIEW_NONE);
		put(l, view_of(name));
		put(l, VIEW("="));
		return;
	}
	put(l, l->len > 0 ? VIEW(",") : VIEW("{"));
	put_quoted(l, view_of(name));
	put(l, VIEW(":"));
}

static void put_field(struct line *l, const struct log_field *f)
{
	char digits[24];

	if (l->len + strlen(f->name) + 2 * TAIL_BYTES > sizeof(l->text))
		return;
	put_name(l, f->name);
	if (f->kind == LOG_INT) {
		(void)snprintf(digits, sizeof(digits), "%" PRId64, f->num);
		put(l, view_of(digits));
	} else if (state.tty && is_word(f->str)) {
		put(l, f->str);
	} else {
		put_quoted(l, f->str);
	}
}

/*
 * RFC 3339 in UTC.  Not gmtime(3): that reads /etc/localtime behind our back.  The year is
 * counted from March, so that a leap day comes last.
 */
static void format_time(uint64_t ms, char *ret, size_t size)
{
	uint64_t days = ms / 86400000 + 719468, day_ms = ms % 86400000;
	uint64_t era = days / 146097, day = days % 146097;
	uint64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	uint64_t yday = day - (365 * year + year / 4 - year / 100);
	uint64_t month = (5 * yday + 2) / 153;

	(void)snprintf(ret, size, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
		       (unsigned)(era * 400 + year + (month >= 10)),
		       (unsigned)(month < 10 ? month + 3 : month - 9),
		       (unsigned)(yday - (153 * month + 2) / 5 + 1), (unsigned)(day_ms / 3600000),
		       (unsigned)(day_ms / 60000 % 60), (unsigned)(day_ms / 1000 % 60),
		       (unsigned)(day_ms % 1000));
}

void log_fields(enum log_level level, const char *msg, const struct log_field *fields)
{
	int saved = errno;
	struct line l;
	char ts[64];

	if (!log_enabled(level))
		return;
	l.len = 0;
	format_time(clock_wall_ms(), ts, sizeof(ts));
	put_field(&l, &LOG_S("ts", ts));
	put_field(&l, &LOG_S("lvl", level_name[level]));
	put_field(&l, &LOG_S("prog", state.prog));
	put_field(&l, &LOG_S("msg", msg));
	for (; fields->name; fields++)
		put_field(&l, fields);
	put(&l, state.tty ? VIEW("\n") : VIEW("}\n"));

	/* A log that cannot be written is nobody's error to handle. */
	while (write(state.fd, l.text, l.len) < 0 && errno == EINTR)
		;
	errno = saved;
}
