/*
 * sys/splice.h - moves bytes between sockets inside the kernel, through a pipe.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/macro.h"

struct err;

/* A non-blocking, close-on-exec pipe, as large as the kernel lets it be up to 256 KiB. */
osb_must_check int splice_pipe_open(int ret[2], struct err *e);
void splice_pipe_close(int pipe[2]); /* accepts -1; leaves -1 */

/* Bytes moved (0 = end of input), -EAGAIN when either side would block, or -errno. */
osb_must_check ssize_t splice_move(int from, int to, size_t n);
