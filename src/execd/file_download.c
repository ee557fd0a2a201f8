/*
 * execd/file_download.c - GET /files/download: a whole file, a byte range, or some of its lines.
 *
 * The size is taken once, from the open file: bytes added later are not sent, and when the file
 * shrinks the connection is closed short.  Files whose size tells nothing (in /proc and /sys) are
 * read until their end.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/range.h"
#include "codec/rfc3339.h"
#include "codec/url.h"
#include "execd/errors.h"
#include "execd/file_job.h"
#include "execd/file_names.h"
#include "execd/files.h"
#include "net/http_server.h"

#define PIECE_BYTES (64u << 10)
#define HELD_BYTES  2 /* a line's end and a "\r" that wait for the next piece */
#define ALL_LINES   UINT64_MAX

/* ---- a file as a stream of pieces ---- */

struct read_job {
	struct file_job job;
	int fd;
	const char *path; /* in the request's arena */
	bool by_lines;
	uint64_t skip;	/* lines still to be left out */
	uint64_t lines; /* lines still to be sent; ALL_LINES = whatever comes */
	bool is_ended;	/* the line sent last has its end: the next one begins with "\n" */
	bool has_cr;	/* a "\r" is held back: it is not sent if it belongs to the line's end */
	bool begun;
	char piece[HELD_BYTES + PIECE_BYTES];
};

static struct view behind_skipped(struct read_job *j, struct view piece)
{
	while (j->skip > 0 && piece.len > 0) {
		size_t at = view_find(piece, '\n');

		if (at < piece.len)
			j->skip--;
		piece = view_skip(piece, at + 1);
	}
	return piece;
}

/*
 * The wanted lines of a piece, with "\n" between them and nothing behind the last one.  They are
 * moved together at the front of the piece: with what was held back they never reach the text
 * that is still to be read.
 */
static struct view join_lines(struct read_job *j, struct view piece)
{
	char *out = j->piece;

	piece = behind_skipped(j, piece);
	while (j->lines > 0 && piece.len > 0) {
		size_t at = view_find(piece, '\n');
		struct view text = view_first(piece, at);
		bool ends = at < piece.len;

		if (j->is_ended)
			*out++ = '\n';
		if (j->has_cr && text.len > 0)
			*out++ = '\r';
		j->has_cr = text.len > 0 && text.p[text.len - 1] == '\r';
		text = view_first(text, text.len - j->has_cr);
		memmove(out, text.p, text.len);
		out += text.len;
		j->is_ended = ends;
		if (ends)
			j->has_cr = false;
		if (ends && j->lines != ALL_LINES)
			j->lines--;
		piece = view_skip(piece, at + 1);
	}
	return view_mem(j->piece, (size_t)(out - j->piece));
}

static enum file_job_next read_step(struct file_job *job)
{
	struct read_job *j = container_of(job, struct read_job, job);
	char name[FILE_NAME_SHORT];
	struct view part;
	ssize_t n;

	n = j->lines > 0 ? read(j->fd, j->piece + HELD_BYTES, PIECE_BYTES) : 0;
	if (n < 0 && errno == EINTR)
		return FILE_JOB_MORE;
	if (n < 0 && !j->begun) {
		http_reply_error(job->x, 500, CODE_RUNTIME, "read '%s': %s",
				 file_name_short(j->path, name), strerror(errno));
		return FILE_JOB_DONE;
	}
	if (!j->begun) {
		http_reply_begin(job->x, 200, /* length= */ -1);
		j->begun = true;
	}
	if (n <= 0) {
		http_reply_end(job->x);
		return FILE_JOB_DONE;
	}
	part = view_mem(j->piece + HELD_BYTES, (size_t)n);
	if (j->by_lines)
		part = join_lines(j, part);
	if (part.len == 0)
		return FILE_JOB_MORE;
	return http_reply_write(job->x, part) ? FILE_JOB_MORE : FILE_JOB_WAIT;
}

static void read_free(struct file_job *job)
{
	struct read_job *j = container_of(job, struct read_job, job);

	fd_close(j->fd);
	free(j);
}

/* To be started; takes `fd`. */
static struct read_job *read_job_new(int fd, const char *path)
{
	struct read_job *j = mem_new(struct read_job);

	j->fd = fd;
	j->path = path;
	j->lines = ALL_LINES;
	return j;
}

static void send_pieces(struct app *app, struct http_exchange *x, struct read_job *j)
{
	static const struct file_job_ops ops = {.step = read_step, .free = read_free};

	file_job_start(&j->job, &ops, app, x, &file_root_real);
}

/* ---- lines ---- */

/* Takes `fd`. */
static void send_lines(struct app *app, struct http_exchange *x, int fd, const char *path,
		       uint64_t skip, uint64_t lines)
{
	struct read_job *j = read_job_new(fd, path);

	j->by_lines = true;
	j->skip = skip;
	j->lines = lines;
	http_reply_header(x, "Content-Type", VIEW("text/plain; charset=utf-8"));
	send_pieces(app, x, j);
}

/* 1: lines were asked for; 0: they were not; -EINVAL: the request was answered. */
static int query_lines(struct http_exchange *x, uint64_t *ret_skip, uint64_t *ret_lines)
{
	struct view offset = VIEW_NONE, limit = VIEW_NONE, range;
	uint64_t first = 1, count = ALL_LINES;

	if (url_query_get(http_arena(x), http_query(x), "offset", &offset) < 0 ||
	    url_query_get(http_arena(x), http_query(x), "limit", &limit) < 0) {
		http_reply_error(x, 400, CODE_INVALID_REQUEST, "the query is malformed");
		return -EINVAL;
	}
	if (offset.len == 0 && limit.len == 0)
		return 0;
	if (offset.len > 0 && (!num_parse_u64(offset, &first) || first == 0)) {
		http_reply_error(x, 400, CODE_INVALID_REQUEST,
				 "offset must be a line number, 1 or more");
		return -EINVAL;
	}
	if (limit.len > 0 && (!num_parse_u64(limit, &count) || count == 0)) {
		http_reply_error(x, 400, CODE_INVALID_REQUEST,
				 "limit must be a number of lines, 1 or more");
		return -EINVAL;
	}
	if (http_header(x, "Range", &range)) {
		http_reply_error(x, 400, CODE_INVALID_REQUEST,
				 "offset and limit count lines, Range counts bytes: use one");
		return -EINVAL;
	}
	*ret_skip = first - 1;
	*ret_lines = count;
	return 1;
}

/* ---- bytes ---- */

/* filename="..." for plain names; others percent-encoded, and again as RFC 8187 has it. */
static void put_disposition(struct http_exchange *x, const char *path)
{
	osb_cleanup(buf_done) struct buf value = BUF_INIT(16u << 10);
	struct view name = view_of(strrchr(path, '/') + 1);
	bool plain = true;
	int r;

	for (size_t i = 0; i < name.len; i++)
		if (name.p[i] < ' ' || name.p[i] > '~' || name.p[i] == '"' || name.p[i] == '\\')
			plain = false;

	r = buf_append_str(&value, "attachment; filename=\"");
	if (r == 0)
		r = plain ? buf_append_view(&value, name) : url_encode(&value, name, false);
	if (r == 0)
		r = buf_append_char(&value, '"');
	if (r == 0 && !plain)
		r = buf_append_str(&value, "; filename*=UTF-8''");
	if (r == 0 && !plain)
		r = url_encode(&value, name, false);
	if (r == 0)
		http_reply_header(x, "Content-Disposition", buf_view(&value));
}

static void put_headers(struct http_exchange *x, const char *path, const struct stat *st)
{
	char date[RFC3339_MAX];

	http_reply_header(x, "Content-Type", VIEW("application/octet-stream"));
	put_disposition(x, path);
	http_reply_header(x, "Accept-Ranges", VIEW("bytes"));
	rfc3339_format_http(st->st_mtim.tv_sec, date);
	http_reply_header(x, "Last-Modified", view_of(date));
}

/* A date in a header says that the client's copy is as new as the file. */
static bool date_covers(struct http_exchange *x, const char *header, const struct stat *st)
{
	struct view text;
	int64_t date;

	return http_header(x, header, &text) && rfc3339_parse_http(text, &date) &&
	       st->st_mtim.tv_sec <= date;
}

/* A range is only for the file that the client has a part of. */
static bool range_applies(struct http_exchange *x, const struct stat *st)
{
	struct view if_range;
	int64_t date;

	if (!http_header(x, "If-Range", &if_range))
		return true;
	return rfc3339_parse_http(if_range, &date) && date == st->st_mtim.tv_sec;
}

/* Answers a range request; false when the whole file is to be sent.  Takes *fd if it answers. */
static bool send_range(struct http_exchange *x, int *fd, const char *path, const struct stat *st)
{
	uint64_t size = (uint64_t)st->st_size, start = 0, len = 0;
	struct view range;
	char text[80];

	if (!http_header(x, "Range", &range) || !range_applies(x, st))
		return false;
	switch (range_parse(range, size, &start, &len)) {
	case RANGE_IGNORED:
		return false;
	case RANGE_OK:
		put_headers(x, path, st);
		snprintf(text, sizeof(text), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, start,
			 start + len - 1, size);
		http_reply_header(x, "Content-Range", view_of(text));
		http_reply_file(x, 206, take_fd(*fd), start, len);
		return true;
	case RANGE_MALFORMED:
	case RANGE_UNSATISFIABLE:
		break;
	}
	snprintf(text, sizeof(text), "bytes */%" PRIu64, size);
	http_reply_header(x, "Content-Range", view_of(text));
	http_reply_error(x, 416, CODE_UNKNOWN, "the file has %" PRIu64 " bytes: no such range",
			 size);
	return true;
}

/* A small file leaves in one piece, as long as it really is.  Takes *fd when it answers. */
static bool send_small(struct http_exchange *x, int fd, const char *path, const struct stat *st)
{
	char piece[4096 + 1];
	ssize_t n;

	if (st->st_size == 0 || st->st_size > (off_t)sizeof(piece) - 1)
		return false;
	n = pread(fd, piece, sizeof(piece), 0);
	if (n < 0 || n == sizeof(piece)) /* it grew: the announced size is sent */
		return false;
	put_headers(x, path, st);
	http_reply(x, 200, NULL, view_mem(piece, MIN((size_t)n, (size_t)st->st_size)));
	return true;
}

static void send_file(struct app *app, struct http_exchange *x, int fd_taken, const char *path,
		      const struct stat *st)
{
	osb_cleanup(fd_closep) int fd = fd_taken;
	char byte;

	if (date_covers(x, "If-Modified-Since", st) &&
	    !http_header(x, "Range", &(struct view){0})) {
		http_reply(x, 304, NULL, VIEW_NONE);
		return;
	}
	if (st->st_size == 0 && pread(fd, &byte, 1, 0) == 1) {
		http_reply_header(x, "Content-Type", VIEW("application/octet-stream"));
		put_disposition(x, path);
		send_pieces(app, x, read_job_new(take_fd(fd), path));
		return;
	}
	if (send_range(x, &fd, path, st) || send_small(x, fd, path, st))
		return;
	put_headers(x, path, st);
	http_reply_file(x, 200, take_fd(fd), 0, (uint64_t)st->st_size);
}

void files_download(struct app *app, struct http_exchange *x, const struct file_root *root)
{
	struct view text = VIEW_NONE;
	uint64_t skip = 0, lines = ALL_LINES;
	struct err e = ERR_NONE;
	const char *path;
	struct stat st;
	int fd, by_lines;

	if (url_query_get(http_arena(x), http_query(x), "path", &text) < 0) {
		http_reply_error(x, 400, CODE_INVALID_REQUEST, "the query is malformed");
		return;
	}
	if (text.len == 0) {
		http_reply_error(x, 400, CODE_MISSING_QUERY,
				 "the query parameter 'path' is missing");
		return;
	}
	by_lines = query_lines(x, &skip, &lines);
	if (by_lines < 0)
		return;
	if (file_root_path(root, app, http_arena(x), text, &path, &e) < 0) {
		reply_file_error(x, &e);
		return;
	}
	fd = file_root_open_regular(root, path, &st, &e);
	if (fd == -EINVAL)
		reply_bad_request(x, CODE_INVALID_FILE, &e);
	else if (fd < 0)
		reply_file_error(x, &e);
	else if (by_lines)
		send_lines(app, x, fd, path, skip, lines);
	else
		send_file(app, x, fd, path, &st);
}
