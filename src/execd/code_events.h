/*
 * execd/code_events.h - the events that only runs of code have.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;
struct code_message;

/* `execution_count` (for a result; not for what was displayed) and `result`, whose text is there
 * both as "text" and as "text/plain". */
osb_must_check int code_event_result(struct buf *out, const struct code_message *m,
				     uint64_t timestamp_ms);

osb_must_check int code_event_error(struct buf *out, const struct code_message *m,
				    uint64_t timestamp_ms);
