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

/* A ready one that fits, or NULL. */
struct box *seed_take(struct warden *w, const char *image, bool nat);

/* Makes up for what was taken, and for what waiting creates need. */
void seed_refill(struct warden *w);
