/*
 * execd/metrics.h - processor and memory use of the sandbox, read at once.
 *
 * The share of processor time is that since an earlier reading, which is kept.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"

struct buf;

struct metrics_base {
	uint64_t at_us;	 /* monotonic */
	uint64_t cpu_us; /* used up to then */
};

struct metrics {
	double cpu_count;
	double cpu_used_pct; /* of all of cpu_count, 0..100 */
	double mem_total_mib;
	double mem_used_mib;
	uint64_t timestamp_ms;
};

/* A first reading to compare with. */
void metrics_base_init(struct metrics_base *b);

/* Reads everything; *b moves on when it is old enough for a new comparison to mean something. */
void metrics_read(struct metrics_base *b, struct metrics *ret);

/* Appends the JSON object.  0 or -E2BIG. */
osb_must_check int metrics_write(const struct metrics *m, struct buf *out);
