/*
 * sys/pty.h - pseudo-terminals.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"

struct err;

/* A terminal of the given size.  Both ends are close-on-exec and the caller's; the master does not
 * block.  Needs a devpts, not a path to the slave in it. */
osb_must_check int pty_open(uint16_t cols, uint16_t rows, int *ret_master, int *ret_slave,
			    struct err *e);

osb_must_check int pty_resize(int master, uint16_t cols, uint16_t rows); /* 0 or -errno */

/* The process group in the foreground, or -1. */
pid_t pty_foreground(int master);
