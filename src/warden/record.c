/*
 * warden/record.c - the record's bytes: written once, before the box exists, and read back whole.
 */
#include "warden/record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

#define RECORD_NAME  "record"
#define RECORD_MAGIC UINT32_C(0x31786f62) /* "box1" */

struct file {
	uint32_t magic;
	struct record record;
};

int record_write(int box_fd, const struct record *r, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct file f = {.magic = RECORD_MAGIC, .record = *r};

	fd = openat(box_fd, RECORD_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(e, -errno, "create the box's record: %m");
	if (write(fd, &f, sizeof(f)) != (ssize_t)sizeof(f))
		return err_set(e, -EIO, "write the box's record");
	return 0;
}

int record_read(int box_fd, struct record *ret, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct file f;

	fd = openat(box_fd, RECORD_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open the box's record: %m");
	if (read(fd, &f, sizeof(f)) != (ssize_t)sizeof(f) || f.magic != RECORD_MAGIC ||
	    !memchr(f.record.cgroup, '\0', sizeof(f.record.cgroup)))
		return err_set(e, -EINVAL, "the box's record is malformed");
	*ret = f.record;
	return 0;
}
