/*
 * warden/yards.h - where on the disk boxes come to lie.
 */
#pragma once

#include <sys/types.h>

#include "base/macro.h"

struct err;
struct warden;

/* Finds out whether it matters on this file system, and clears up after an earlier warden. */
osb_must_check int yards_open(struct warden *w, struct err *e);

/* Makes boxes/<name>. */
osb_must_check int yards_make_box(struct warden *w, const char *name, mode_t mode, struct err *e);
