/*
 * codec/cron.h - schedules: five cron fields, "@hourly" and its kin, or "@every Ns".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct err;

struct cron {
	uint64_t every_s; /* "@every": whole seconds; 0 = the fields count */
	uint64_t minutes; /* bit n: minute n */
	uint32_t hours, days, months;
	uint8_t weekdays; /* bit 0: Sunday */
	bool any_day, any_weekday;
};

/* -EINVAL with a sentence. */
osb_must_check int cron_parse(struct view text, struct cron *ret, struct err *e);

/* Unix seconds (UTC) of the first match after `after_s`; 0 if there is none within five years. */
int64_t cron_next(const struct cron *c, int64_t after_s);
