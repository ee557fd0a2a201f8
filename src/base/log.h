/*
 * base/log.h - one line per event on stderr: JSON lines, or logfmt on a terminal.
 *
 * `msg` is a constant string; facts are fields.  Only programs log; libraries return errors.
 * User bytes are escaped here, never by the caller.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/view.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_LEVELS_ };

enum log_kind { LOG_STR, LOG_INT };

struct log_field {
	const char *name; /* NULL ends the list */
	enum log_kind kind;
	struct view str;
	int64_t num;
};

#define LOG_S(field_name, s) ((struct log_field){(field_name), LOG_STR, view_of(s), 0})
#define LOG_V(field_name, v) ((struct log_field){(field_name), LOG_STR, (v), 0})
#define LOG_I(field_name, n) ((struct log_field){(field_name), LOG_INT, VIEW_NONE, (n)})

void log_init(const char *prog, enum log_level level, int fd); /* fd: usually 2 */
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);

/* log_line(LOG_INFO, "listening", LOG_S("address", a), LOG_I("port", p)); */
#define log_line(level, msg, ...)                                                                  \
	log_fields((level), (msg), (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){0}})

void log_fields(enum log_level level, const char *msg, const struct log_field *fields);
