/*
 * warden/seed.h - sandboxes made ahead: contained, with execd running and waiting for its start
 * file.
 */
#pragma once

#include "base/macro.h"

struct box;
struct kind;
struct warden;

/* A ready one of this kind, or NULL. */
struct box *seed_take(struct warden *w, struct kind *k);

/* Makes up for what was taken, and for what waiting creates need. */
void seed_refill(struct warden *w);

/* Seeds of this kind are ended; some milliseconds later they are gone. */
void seed_drop(struct warden *w, struct kind *k);

/* Until nothing of dropped seeds is mounted any more. */
void seed_await_dropped(struct warden *w);
