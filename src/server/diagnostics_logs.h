/*
 * server/diagnostics_logs.h - the last lines that a sandbox's entrypoint wrote.
 *
 * The log is a sandbox's own doing: it may hold anything and change while it is read.  It is read
 * from its end, never whole.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"

struct buf;
struct err;

#define DIAGNOSTICS_LOG_MAX_BYTES (1u << 20)

/*
 * Appends at most `tail` lines, none of them older than `since_us` (Unix microseconds; 0 = all).
 * *ret_truncated: there is more in the log.  No log at all is an empty one.
 */
osb_must_check int diagnostics_logs(const char *id, unsigned tail, int64_t since_us,
				    struct buf *out, bool *ret_truncated, struct err *e);
