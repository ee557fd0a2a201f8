/*
 * egress/event_log.c - appends whole lines: others may write to the file too, or empty it.
 */
#include "egress/event_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"

struct event_log {
	int fd;
	bool failing;
};

int event_log_open(const char *path, struct event_log **ret, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;

	if (!path[0]) {
		*ret = NULL;
		return 0;
	}
	/* A FIFO without a reader must not hold up everybody. */
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0640);
	if (fd < 0)
		return err_set(e, -errno, "open '%s' for decisions: %m", path);
	*ret = mem_new(struct event_log);
	(*ret)->fd = take_fd(fd);
	return 0;
}

void event_log_close(struct event_log *log)
{
	if (!log)
		return;
	fd_close(log->fd);
	free(log);
}

void event_log_write(struct event_log *log, struct view line)
{
	ssize_t n = write(log->fd, line.p, line.len);
	bool failed = n != (ssize_t)line.len;

	if (failed && !log->failing)
		log_line(LOG_WARN, "decisions are not written to their file, ignoring it",
			 LOG_I("errno", n < 0 ? errno : ENOSPC));
	log->failing = failed;
}
