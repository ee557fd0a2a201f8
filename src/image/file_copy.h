/*
 * image/file_copy.h - the content of one file: shared if possible, else copied without its holes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"

struct err;

/* What was found out about the file systems on the way. */
struct file_copy {
	bool no_sharing, no_kernel_copy;
};

/* `size` bytes of `from_fd` into the empty file `to_fd`; `blocks` is what they take, of 512 bytes.
 */
osb_must_check int file_copy_content(struct file_copy *c, int from_fd, int to_fd, uint64_t size,
				     uint64_t blocks, struct err *e);
