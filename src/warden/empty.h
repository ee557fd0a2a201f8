/*
 * warden/empty.h - deletes what lies in a directory of trees that sandboxes have written.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"

/* Goes over the directory once, or until that moment (clock_mono_us).  1 = there is more,
 * 0 = it is empty, -errno. */
osb_must_check int empty_pass(int trash_fd, uint64_t until);
