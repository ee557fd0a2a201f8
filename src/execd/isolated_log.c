/*
 * execd/isolated_log.c - a ring in an unnamed file.
 */
#include "execd/isolated_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "execd/app.h"
#include "execd/options.h"

int isolated_log_open(struct isolated_log *l, struct app *app, struct err *e)
{
	const char *dirs[] = {app->options ? app->options->state_dir : NULL, getenv("TMPDIR"),
			      "/var/tmp", "/tmp"};

	l->total = 0;
	l->fd = -1;
	for (size_t i = 0; i < ARRAY_LEN(dirs) && l->fd < 0; i++)
		if (dirs[i])
			l->fd = open(dirs[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (l->fd < 0)
		l->fd = memfd_create("isolated-run", MFD_CLOEXEC);
	return l->fd < 0 ? err_set(e, -errno, "make a log: %m") : 0;
}

void isolated_log_close(struct isolated_log *l)
{
	l->fd = fd_close(l->fd);
}

void isolated_log_write(struct isolated_log *l, struct view bytes)
{
	while (bytes.len > 0) {
		uint64_t at = l->total % ISOLATED_LOG_MAX;
		size_t n = MIN(bytes.len, (size_t)(ISOLATED_LOG_MAX - at));

		/* A full disk loses output, not the run: the offsets go on. */
		(void)!pwrite(l->fd, bytes.p, n, (off_t)at);
		l->total += n;
		bytes = view_skip(bytes, n);
	}
}

int isolated_log_read(const struct isolated_log *l, uint64_t cursor, struct buf *out, struct err *e)
{
	uint64_t oldest = l->total > ISOLATED_LOG_MAX ? l->total - ISOLATED_LOG_MAX : 0;

	cursor = MAX(cursor, oldest);
	while (cursor < l->total) {
		uint64_t at = cursor % ISOLATED_LOG_MAX;
		size_t n = (size_t)MIN(l->total - cursor, ISOLATED_LOG_MAX - at);
		char *p = buf_reserve(out, n);
		ssize_t got = p ? pread(l->fd, p, n, (off_t)at) : -1;

		if (got <= 0)
			return err_set(e, -EIO, "read the log of the run");
		buf_commit(out, (size_t)got);
		cursor += (uint64_t)got;
	}
	return 0;
}
