/*
 * sys/capset.h - capability sets of the calling process.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"

struct err;

/* Effective = permitted. */
osb_must_check int capset_raise_effective(struct err *e);

/* Bounding, permitted, effective: only `mask` (bit n = capability n); inheritable and ambient:
 * none. */
osb_must_check int capset_keep_only(uint64_t mask, struct err *e);
