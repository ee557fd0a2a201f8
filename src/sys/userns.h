/*
 * sys/userns.h - user namespaces as file descriptors.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"

struct err;

/* A namespace in which ids 0..count-1 are the host's base..base+count-1, and which belongs to the
 * first of them.  For root.  The caller owns *ret_fd. */
osb_must_check int userns_new(uint32_t base, uint32_t count, int *ret_fd, struct err *e);

/* That of a process, which is ours and has not been reaped. */
osb_must_check int userns_of(pid_t pid, int *ret_fd, struct err *e);

/* Enters it as its root: the last step before exec.  Gives up every supplementary group first. */
osb_must_check int userns_enter(int fd, struct err *e);
