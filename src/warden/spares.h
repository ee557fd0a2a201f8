/*
 * warden/spares.h - cgroups of ended boxes that serve again.
 */
#pragma once

#include "base/macro.h"

struct cgroup;
struct err;
struct warden;

/* Takes an empty one that this warden has made: kept for the next box, or removed. */
void spares_put(struct warden *w, struct cgroup *g);

/* One that is as new, with `name` if it has to be made. */
osb_must_check int spares_take(struct warden *w, const char *name, struct cgroup **ret,
			       struct err *e);

/* Removes them all. */
void spares_drop(struct warden *w);
