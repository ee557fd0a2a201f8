/*
 * base/clock.c - monotonic and wall-clock time from the kernel.
 */
#include "base/clock.h"

#include <time.h>

static uint64_t read_ns(clockid_t id)
{
	struct timespec ts = {0};

	/* Fails for unknown clocks only, and these two are always there. */
	(void)clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t clock_mono_us(void)
{
	return read_ns(CLOCK_MONOTONIC) / 1000;
}

uint64_t clock_wall_ms(void)
{
	return read_ns(CLOCK_REALTIME) / 1000000;
}

uint64_t clock_wall_ns(void)
{
	return read_ns(CLOCK_REALTIME);
}
