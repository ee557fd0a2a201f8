/*
 * Schedules: the next moment is later, and it is one that the schedule names.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "codec/cron.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct cron *c, int64_t after)
{
	int64_t next = cron_next(c, after);
	time_t moment = (time_t)next;
	struct tm tm;

	if (next == 0)
		return;
	assert(next > after);
	if (c->every_s > 0) {
		assert(next == after + (int64_t)c->every_s);
		return;
	}
	assert(gmtime_r(&moment, &tm) && tm.tm_sec == 0);
	assert(c->minutes >> tm.tm_min & 1);
	assert(c->hours >> tm.tm_hour & 1);
	assert(c->months >> (tm.tm_mon + 1) & 1);
	assert(c->days >> tm.tm_mday & 1 || c->weekdays >> tm.tm_wday & 1);
	if (c->any_day || c->any_weekday)
		assert(c->days >> tm.tm_mday & 1 && c->weekdays >> tm.tm_wday & 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = ERR_NONE;
	struct cron c;
	uint32_t after;

	if (size < sizeof(after))
		return 0;
	memcpy(&after, data, sizeof(after));
	if (cron_parse(view_mem(data + sizeof(after), size - sizeof(after)), &c, &e) < 0) {
		assert(e.msg[0] != '\0');
		return 0;
	}
	check(&c, 0);
	check(&c, after);
	check(&c, (int64_t)after + 4000000000);
	return 0;
}
