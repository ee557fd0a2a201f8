/*
 * server/diagnostics_logs.c - a window at the end of the log, made larger until it holds enough.
 */
#include "server/diagnostics_logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "codec/rfc3339.h"

#define WINDOW_FIRST 65536

static int open_log(const char *id, uint64_t *ret_size, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "%s/log/entry.log", id); /* below our current directory */
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open the log of '%s': %m", id);
	if (fstat(fd, &st) < 0)
		return err_set(e, -errno, "look at the log of '%s': %m", id);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "the log of '%s' is no file", id);
	*ret_size = (uint64_t)st.st_size;
	return take_fd(fd);
}

/* The last `want` bytes of the file, or fewer if it has become shorter. */
static int read_window(int fd, uint64_t size, uint64_t want, struct buf *ret, struct err *e)
{
	uint64_t at = size - want;
	char *to;

	buf_clear(ret);
	to = buf_reserve(ret, want);
	if (!to)
		return err_set(e, -E2BIG, "the log's window is too large");
	while (want > 0) {
		ssize_t n = pread(fd, to, want, (off_t)at);

		if (n < 0)
			return err_set(e, -errno, "read a log: %m");
		if (n == 0)
			break;
		buf_commit(ret, (size_t)n);
		to += n;
		at += (uint64_t)n;
		want -= (uint64_t)n;
	}
	return 0;
}

/* Where the last `n` lines begin; *ret_found is how many there are, up to n. */
static size_t last_lines(struct view text, unsigned n, unsigned *ret_found)
{
	size_t at = text.len;

	*ret_found = 0;
	/* The end of the last line is not the beginning of another one. */
	if (at > 0 && text.p[at - 1] == '\n')
		at--;
	while (at > 0) {
		if (text.p[at - 1] == '\n' && ++*ret_found == n)
			return at;
		at--;
	}
	if (text.len > 0)
		++*ret_found;
	return 0;
}

/* Lines come in the order of time: the old ones are all in front. */
static struct view without_old(struct view text, int64_t since_us)
{
	struct view rest = text, line;

	while (view_split(&rest, '\n', &line)) {
		int64_t at_ns;

		if (rfc3339_parse(view_first(line, view_find(line, ' ')), &at_ns) &&
		    at_ns / 1000 >= since_us)
			return text;
		text = rest;
	}
	return VIEW_NONE;
}

int diagnostics_logs(const char *id, unsigned tail, int64_t since_us, struct buf *out,
		     bool *ret_truncated, struct err *e)
{
	osb_cleanup(buf_done) struct buf window = BUF_INIT(DIAGNOSTICS_LOG_MAX_BYTES);
	osb_cleanup(fd_closep) int fd = -1;
	uint64_t size, most, want = WINDOW_FIRST;
	struct view text = VIEW_NONE;
	unsigned found = 0;
	size_t begin;
	int r;

	fd = open_log(id, &size, e);
	if (fd == -ENOENT) {
		*ret_truncated = false;
		return 0;
	}
	if (fd < 0)
		return fd;
	most = MIN(size, (uint64_t)DIAGNOSTICS_LOG_MAX_BYTES);
	for (;;) {
		want = MIN(want, most);
		r = read_window(fd, size, want, &window, e);
		if (r < 0)
			return r;
		text = buf_view(&window);
		begin = last_lines(text, tail, &found);
		if (begin > 0 || want == most)
			break;
		want *= 4;
	}
	/* A window that begins inside the log begins inside a line. */
	if (begin == 0 && want < size)
		begin = MIN(view_find(text, '\n') + 1, text.len);
	*ret_truncated = begin > 0 || want < size;
	text = view_skip(text, begin);
	if (since_us > 0)
		text = without_old(text, since_us);
	r = buf_append_view(out, text);
	return r < 0 ? err_set(e, r, "the log is too large for one answer") : 0;
}
