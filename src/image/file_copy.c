/*
 * image/file_copy.c - ioctl, copy_file_range, or read and write, whichever works.
 */
#include "image/file_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/err.h"
#include "sys/reflink.h"

#define CHUNK	   65536
#define KERNEL_MAX (1 << 30) /* at once */

static int copy_by_hand(int from_fd, int to_fd, uint64_t at, uint64_t end, struct err *e)
{
	char chunk[CHUNK];

	while (at < end) {
		size_t want = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
		ssize_t n = pread(from_fd, chunk, want, (off_t)at);

		if (n < 0)
			return err_set(e, -errno, "read a file: %m");
		if (n == 0)
			return 0; /* it has shrunk; the rest is a hole */
		if (pwrite(to_fd, chunk, (size_t)n, (off_t)at) != n)
			return err_set(e, errno ? -errno : -EIO, "write a file: %m");
		at += (uint64_t)n;
	}
	return 0;
}

static int copy_range(struct file_copy *c, int from_fd, int to_fd, uint64_t at, uint64_t end,
		      struct err *e)
{
	while (!c->no_kernel_copy && at < end) {
		off_t in = (off_t)at, out = (off_t)at;
		size_t want = end - at < KERNEL_MAX ? (size_t)(end - at) : KERNEL_MAX;
		ssize_t n = copy_file_range(from_fd, &in, to_fd, &out, want, 0);

		if (n == 0)
			return 0;
		if (n > 0)
			at += (uint64_t)n;
		else if (errno == ENOSPC || errno == EDQUOT || errno == EIO)
			return err_set(e, -errno, "copy a file: %m");
		else if (errno != EINTR)
			c->no_kernel_copy = true;
	}
	return copy_by_hand(from_fd, to_fd, at, end, e);
}

static int copy_pieces(struct file_copy *c, int from_fd, int to_fd, uint64_t size, struct err *e)
{
	uint64_t at = 0;
	int r = 0;

	while (r == 0 && at < size) {
		off_t data = lseek(from_fd, (off_t)at, SEEK_DATA), hole;

		if (data < 0 && errno == ENXIO)
			break; /* nothing but a hole follows */
		if (data < 0)
			return copy_range(c, from_fd, to_fd, at, size, e);
		hole = lseek(from_fd, data, SEEK_HOLE);
		if (hole < 0 || (uint64_t)hole > size)
			hole = (off_t)size;
		r = copy_range(c, from_fd, to_fd, (uint64_t)data, (uint64_t)hole, e);
		at = (uint64_t)hole;
	}
	return r;
}

int file_copy_content(struct file_copy *c, int from_fd, int to_fd, uint64_t size, uint64_t blocks,
		      struct err *e)
{
	int r;

	if (size == 0)
		return 0;
	if (!c->no_sharing) {
		r = reflink(from_fd, to_fd);
		if (r == 0)
			return 0;
		if (r == -ENOSPC || r == -EDQUOT)
			return err_set(e, r, "share a file: no space");
		c->no_sharing = true;
	}
	if (blocks * 512 >= size)
		return copy_range(c, from_fd, to_fd, 0, size, e);
	r = copy_pieces(c, from_fd, to_fd, size, e);
	if (r == 0 && ftruncate(to_fd, (off_t)size) < 0)
		r = err_set(e, -errno, "copy a file: %m");
	return r;
}
