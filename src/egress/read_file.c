/*
 * egress/read_file.c - opens without waiting: a path may be anything.
 */
#include "egress/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"

#define PIECE 16384

int read_file(const char *path, struct buf *ret, struct err *e)
{
	osb_cleanup(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : err_set(e, -errno, "open '%s': %m", path);
	for (;;) {
		char piece[PIECE];
		ssize_t n = read(fd, piece, sizeof(piece));

		if (n < 0)
			return err_set(e, -errno, "read '%s': %m", path);
		if (n == 0)
			return 0;
		if (buf_append(ret, piece, (size_t)n) < 0)
			return err_set(e, -E2BIG, "'%s' is larger than %zu bytes", path, ret->max);
	}
}
