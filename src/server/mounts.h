/*
 * server/mounts.h - the supervisor's own view of mounts.
 */
#pragma once

#include "base/macro.h"

struct err;

/* What is mounted on the host still shows up here; what is mounted here, in the directory for
 * object stores, shows up in wardens that are started from here, and nowhere else. */
osb_must_check int mounts_separate(const char *state_dir, struct err *e);
