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

/* Finds the sandbox by pid and start time.  One whose first process has gone comes back dead, with
 * its files; -ESRCH: nothing is left of it. */
osb_must_check int adopt_box(struct warden *w, const char *id, pid_t pid, uint64_t start_time,
			     struct box **ret, struct err *e);

/* Removes every box, directory, cgroup and network that the server did not claim. */
void adopt_sweep(struct warden *w);
