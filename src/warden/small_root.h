/*
 * warden/small_root.h - the warden's own mount namespace: a root with the few mounts it needs and
 * nothing else.
 */
#pragma once

#include "base/macro.h"

struct err;

/* Every clone copies the caller's mounts: after this there are a handful, however many the host
 * has. */
osb_must_check int small_root_enter(const char *state_dir, struct err *e);
