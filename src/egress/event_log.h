/*
 * egress/event_log.h - a file to which decisions are appended, one JSON object a line.
 */
#pragma once

#include "base/macro.h"
#include "base/view.h"

struct err;
struct event_log;

/* *ret is NULL if `path` is "".  The file is made if it is not there, for its owner and his group
 * to read. */
osb_must_check int event_log_open(const char *path, struct event_log **ret, struct err *e);
void event_log_close(struct event_log *log); /* accepts NULL */

/* With its line end.  Lines that cannot be written are dropped; the log says so once. */
void event_log_write(struct event_log *log, struct view line);
