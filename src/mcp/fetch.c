/*
 * mcp/fetch.c - see fetch.h.
 */
#include "mcp/fetch.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "mcp/call.h"

/* More than is wanted need not come. */
static int on_progress(void *arg, int64_t done, int64_t total)
{
	struct fetch *f = arg;

	(void)total;
	f->more = done > (int64_t)f->max;
	return f->more;
}

static int read_back(struct call *c, int fd, struct fetch *f, struct buf *ret)
{
	off_t size = lseek(fd, 0, SEEK_END);
	size_t n = size < 0 ? 0 : MIN((size_t)size, f->max);
	char *room = buf_reserve(ret, n);

	if (size < 0 || !room || (n && pread(fd, room, n, 0) != (ssize_t)n))
		return call_fail(c, "The file cannot be kept in memory: %s.", strerror(errno));
	buf_commit(ret, n);
	f->more = (size_t)size > f->max;
	return 0;
}

int fetch_file(struct call *c, osb_sandbox *s, const char *path, struct fetch *f, struct buf *ret)
{
	osb_transfer transfer = {.progress = on_progress, .arg = f};
	osb_cleanup(fd_closep) int fd = memfd_create("file", MFD_CLOEXEC);
	int r;

	f->more = false;
	if (fd < 0)
		return call_fail(c, "There is no memory for the file: %s.", strerror(errno));
	if (f->first == 0 && f->last < 0)
		r = osb_file_download(s, path, fd, &transfer, &c->how, &c->e);
	else
		r = osb_file_download_range(s, path, f->first, f->last, fd, &transfer, &c->how,
					    &c->e);
	if (r < 0 && !(r == OSB_ERR_CANCELLED && f->more))
		return call_fail_osb(c);
	return read_back(c, fd, f, ret);
}
