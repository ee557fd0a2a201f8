/*
 * base/clock.h - what time is it.
 *
 * Deadlines and durations are monotonic microseconds; only what people and protocols see
 * is wall-clock time.
 */
#pragma once

#include <stdint.h>

uint64_t clock_mono_us(void);
uint64_t clock_wall_ms(void); /* Unix milliseconds */
uint64_t clock_wall_ns(void); /* Unix nanoseconds */
