/*
 * sys/memfd.c - memfd_create and its seals.
 */
#include "sys/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* Kernels before 6.3 know no MFD_EXEC: there every memfd may be executed. */
static int create(const char *name, unsigned flags)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd < 0 && errno == EINVAL && flags)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd;
}

static int seal(int fd, struct err *e)
{
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return err_set(e, -errno, "seal a memory file: %m");
	return 0;
}

int memfd_copy(const char *name, const char *path, int *ret_fd, struct err *e)
{
	osb_cleanup(fd_closep) int from = -1, to = -1;
	struct stat st;
	off_t left;
	int r;

	from = open(path, O_RDONLY | O_CLOEXEC);
	if (from < 0 || fstat(from, &st) < 0)
		return err_set(e, -errno, "open '%s': %m", path);
	to = create(name, MFD_EXEC);
	if (to < 0)
		return err_set(e, -errno, "memfd_create: %m");
	for (left = st.st_size; left > 0;) {
		ssize_t n = sendfile(to, from, NULL, (size_t)left);

		if (n <= 0)
			return err_set(e, n < 0 ? -errno : -EIO, "copy '%s'", path);
		left -= n;
	}
	r = seal(to, e);
	if (r < 0)
		return r;
	*ret_fd = take_fd(to);
	return 0;
}

int memfd_of(const char *name, struct view bytes, int *ret_fd, struct err *e)
{
	osb_cleanup(fd_closep) int fd = create(name, 0);
	int r;

	if (fd < 0)
		return err_set(e, -errno, "memfd_create: %m");
	while (bytes.len > 0) {
		ssize_t n = write(fd, bytes.p, bytes.len);

		if (n < 0)
			return err_set(e, -errno, "write a memory file: %m");
		bytes = view_skip(bytes, (size_t)n);
	}
	r = seal(fd, e);
	if (r < 0)
		return r;
	*ret_fd = take_fd(fd);
	return 0;
}

/* Seals are known of memory files only: reading one never waits for anybody. */
int memfd_read(int fd, struct buf *ret, struct err *e)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	off_t at = 0;
	char *to;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0)
		return err_set(e, -EPROTO, "a file that is not sealed");
	to = buf_reserve(ret, (size_t)st.st_size);
	if (!to)
		return err_set(e, -E2BIG, "a memory file of %jd bytes", (intmax_t)st.st_size);
	while (at < st.st_size) {
		ssize_t n = pread(fd, to + at, (size_t)(st.st_size - at), at);

		if (n <= 0)
			return err_set(e, -EIO, "read a memory file: %m");
		at += n;
	}
	buf_commit(ret, (size_t)st.st_size);
	return 0;
}
