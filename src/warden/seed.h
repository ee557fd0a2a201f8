/*
 * warden/seed.h - sandboxes made ahead: contained, with execd running and waiting for its start
 * file.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"

struct box;
struct err;
struct warden;

/* Makes one now. */
osb_must_check int seed_make(struct warden *w, const char *image, bool nat, struct box **ret,
			     struct err *e);

/* A ready one that fits, or NULL. */
struct box *seed_take(struct warden *w, const char *image, bool nat);

/* Makes up for what was taken, one per turn of the loop. */
void seed_refill(struct warden *w);
