/*
 * sys/reflink.h - two files that share their content until one of them is written.
 */
#pragma once

#include "base/macro.h"

#define REFLINK_IOCTL 0x40049409u /* for filters of system calls */

/* The whole content of one file becomes that of another.  0 or -errno: most file systems cannot. */
osb_must_check int reflink(int from_fd, int to_fd);
