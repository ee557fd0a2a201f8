/*
 * execd/entry_log.c - pipes in, dated lines out, one bounded file.
 */
#include "execd/entry_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "codec/entry_lines.h"
#include "codec/rfc3339.h"
#include "net/loop.h"

#define FLUSH_BYTES (32 * 1024)
#define MOVE_BYTES  (16 * 1024)
#define DRAIN_BYTES (1024 * 1024) /* of a stream whose writers do not stop */

struct entry_log {
	struct loop *loop;
	int fd;
	uint64_t size, max;
	struct buf out; /* whole lines on their way into the file; empty between calls */
};

struct entry_stream {
	struct entry_log *log;
	char *source;
	int fd;
	struct loop_fd *watch;
	struct entry_lines lines;
};

/* Appending is our business: a file in append mode would ignore where we write. */
static int own_position(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, (flags & ~O_APPEND) | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

int entry_log_new(struct loop *l, int fd, uint64_t max_bytes, struct entry_log **ret, struct err *e)
{
	struct entry_log *log;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return err_set(e, -errno, "the log (descriptor %d): %m", fd);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "the log (descriptor %d) is no file", fd);
	r = own_position(fd);
	if (r < 0)
		return err_set(e, r, "the log (descriptor %d): %s", fd, strerror(-r));
	log = mem_new(struct entry_log);
	log->loop = l;
	log->fd = fd;
	log->size = (uint64_t)st.st_size;
	log->max = max_bytes;
	buf_init(&log->out, FLUSH_BYTES + ENTRY_LINE_MAX + ENTRY_FRONT_BYTES);
	*ret = log;
	return 0;
}

void entry_log_free(struct entry_log *log)
{
	if (!log)
		return;
	fd_close(log->fd);
	buf_done(&log->out);
	free(log);
}

/* Where the first line begins that starts behind `from`. */
static uint64_t line_behind(struct entry_log *log, uint64_t from, char *scratch)
{
	ssize_t n = pread(log->fd, scratch, MOVE_BYTES, (off_t)from);
	const char *end = n > 0 ? memchr(scratch, '\n', (size_t)n) : NULL;

	return end ? from + (uint64_t)(end - scratch) + 1 : from;
}

/* The newer half moves to the front; readers may meanwhile see lines twice, but none torn. */
static void drop_older_half(struct entry_log *log)
{
	char scratch[MOVE_BYTES];
	uint64_t from = 0, to = 0;

	if (log->size > log->max / 2)
		from = line_behind(log, log->size - log->max / 2, scratch);
	while (from < log->size) {
		ssize_t n = pread(log->fd, scratch, sizeof(scratch), (off_t)from);

		if (n <= 0 || pwrite(log->fd, scratch, (size_t)n, (off_t)to) != n)
			break;
		from += (uint64_t)n;
		to += (uint64_t)n;
	}
	log->size = to;
	(void)!ftruncate(log->fd, (off_t)to);
}

static void flush(struct entry_log *log)
{
	struct view text = buf_view(&log->out);

	if (text.len == 0)
		return;
	if (log->size + text.len > log->max)
		drop_older_half(log);
	if (pwrite(log->fd, text.p, text.len, (off_t)log->size) == (ssize_t)text.len)
		log->size += text.len;
	else
		(void)!ftruncate(log->fd, (off_t)log->size); /* no half lines */
	buf_clear(&log->out);
}

static void put_line(struct entry_log *log, const char *stamp, struct view source, struct view text)
{
	(void)!entry_lines_format(&log->out, stamp, source, text);
	if (log->out.len > FLUSH_BYTES)
		flush(log);
}

static void end_lines(struct entry_log *log)
{
	flush(log);
	buf_shrink(&log->out, /* keep_cap= */ 0);
}

void entry_log_say(struct entry_log *log, const char *fmt, ...)
{
	char stamp[RFC3339_MAX], text[512];
	va_list ap;

	if (!log)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *p = text; *p; p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	rfc3339_format((int64_t)clock_wall_ns(), stamp);
	put_line(log, stamp, VIEW("execd"), view_of(text));
	end_lines(log);
}

static void log_lines(struct entry_stream *s, bool at_end)
{
	char stamp[RFC3339_MAX];
	struct view line;

	rfc3339_format((int64_t)clock_wall_ns(), stamp);
	while (entry_lines_next(&s->lines, at_end, &line))
		put_line(s->log, stamp, view_of(s->source), line);
}

/* Bytes that were read, or 0 when there are none now, or none any more (then the stream ends). */
static size_t take_output(struct entry_stream *s)
{
	char chunk[ENTRY_LINE_CHUNK];
	ssize_t n = read(s->fd, chunk, sizeof(chunk));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n > 0) {
		entry_lines_add(&s->lines, view_mem(chunk, (size_t)n));
		log_lines(s, /* at_end= */ false);
		return (size_t)n;
	}
	loop_fd_free(take_ptr(s->watch));
	s->fd = fd_close(s->fd);
	return 0;
}

static void on_output(void *arg, int fd, unsigned events)
{
	struct entry_stream *s = arg;

	(void)take_output(s);
	end_lines(s->log);
}

int entry_stream_new(struct entry_log *log, const char *source, struct entry_stream **ret,
		     int *ret_fd, struct err *e)
{
	struct entry_stream *s;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(e, -errno, "a pipe for the log: %m");
	s = mem_new(struct entry_stream);
	s->log = log;
	s->fd = ends[0];
	s->source = mem_strdup(source);
	entry_lines_init(&s->lines);
	r = loop_fd_new(log->loop, s->fd, on_output, s, &s->watch, e);
	if (r < 0) {
		fd_close(ends[1]);
		entry_stream_free(s);
		return r;
	}
	loop_fd_want(s->watch, LOOP_READ);
	*ret = s;
	*ret_fd = ends[1];
	return 0;
}

void entry_stream_drain(struct entry_stream *s)
{
	size_t left = DRAIN_BYTES, n;

	while (s && s->fd >= 0 && left > 0 && (n = take_output(s)) > 0)
		left -= MIN(n, left);
	if (s)
		end_lines(s->log);
}

void entry_stream_free(struct entry_stream *s)
{
	if (!s)
		return;
	log_lines(s, /* at_end= */ true);
	end_lines(s->log);
	loop_fd_free(s->watch);
	fd_close(s->fd);
	entry_lines_done(&s->lines);
	free(s->source);
	free(s);
}
