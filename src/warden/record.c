/*
 * warden/record.c - the record's bytes: written once, before the box exists, and read back whole.
 */
#include "warden/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

#define RECORD_NAME  "record"
#define RECORD_MAGIC UINT32_C(0x31786f62) /* "box1" */

#define PORTS_NAME  "ports"
#define PORTS_NEW   PORTS_NAME ".new"
#define PORTS_MAGIC UINT32_C(0x31747270) /* "prt1" */

struct file {
	uint32_t magic;
	struct record record;
};

struct ports_file {
	uint32_t magic;
	struct record_ports ports;
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

/* They change when something inside was quicker: the old ones stay until the new ones are whole. */
int record_write_ports(int box_fd, const struct record_ports *p, struct err *e)
{
	struct ports_file f = {.magic = PORTS_MAGIC, .ports = *p};
	osb_cleanup(fd_closep) int fd = -1;

	fd = openat(box_fd, PORTS_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(e, -errno, "create the box's ports: %m");
	if (write(fd, &f, sizeof(f)) != (ssize_t)sizeof(f))
		return err_set(e, -EIO, "write the box's ports");
	if (renameat(box_fd, PORTS_NEW, box_fd, PORTS_NAME) < 0)
		return err_set(e, -errno, "rename the box's ports: %m");
	return 0;
}

int record_read_ports(int box_fd, struct record_ports *ret, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct ports_file f;

	fd = openat(box_fd, PORTS_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open the box's ports: %m");
	if (read(fd, &f, sizeof(f)) != (ssize_t)sizeof(f) || f.magic != PORTS_MAGIC)
		return err_set(e, -EINVAL, "the box's ports are malformed");
	*ret = f.ports;
	return 0;
}
