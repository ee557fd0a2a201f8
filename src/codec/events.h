/*
 * codec/events.h - the event objects of execution streams: one JSON object, then an empty line.
 *
 * Everything is appended to a caller's buffer; whatever bytes a program printed, the result
 * is valid JSON in valid UTF-8.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;

/* {"type":TYPE,"text":TEXT,"timestamp":MS}; an empty text is omitted.  0 or -E2BIG. */
osb_must_check int events_text(struct buf *out, const char *type, struct view text,
			       uint64_t timestamp_ms);

/* execution_complete; the time is omitted when 0. */
osb_must_check int events_complete(struct buf *out, uint64_t execution_time_ms,
				   uint64_t timestamp_ms);

/* error{ename,evalue,traceback:[...]}; `traceback` may be empty: []. */
osb_must_check int events_error(struct buf *out, const char *ename, struct view evalue,
				struct view traceback, uint64_t timestamp_ms);
