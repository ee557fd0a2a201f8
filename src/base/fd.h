/*
 * base/fd.h - owning file descriptors.
 *
 * An empty fd is -1.  Closing never changes errno.
 */
#pragma once

#include "base/macro.h"

int fd_close(int fd); /* accepts -1; always returns -1: `fd = fd_close(fd);` */

/* `osb_cleanup(fd_closep) int fd = -1;` */
void fd_closep(int *fd);
