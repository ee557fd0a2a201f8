/*
 * warden/adopt.h - sandboxes that ran before this warden: taken over, or removed when nobody claims
 * them.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"

struct box;
struct err;
struct warden;

/* Finds the running sandbox by pid and start time.  -ESRCH: its first process has gone; its remains
 * are removed by the sweep or by a kill. */
osb_must_check int adopt_box(struct warden *w, const char *id, pid_t pid, uint64_t start_time,
			     struct box **ret, struct err *e);

/* Removes every box, directory, cgroup and network that the server did not claim. */
void adopt_sweep(struct warden *w);
