/*
 * server/supervisor_warden.h - how the warden is started.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/macro.h"

struct err;
struct supervisor_means;

/* `policing`: there is an egress.  `fd` is its socket with us, `lock` that of all processes; both
 * borrowed. */
osb_must_check int supervisor_warden_start(const struct supervisor_means *m, bool policing, int fd,
					   int lock, pid_t *ret, struct err *e);
