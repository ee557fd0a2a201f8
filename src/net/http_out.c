/*
 * net/http_out.c - the way out: what the kernel takes at once is never copied, the rest waits in a
 * queue.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/fd.h"
#include "codec/json_writer.h"
#include "net/http_int.h"
#include "net/loop.h"

#define PIECES_MAX	 8
#define SMALL_BYTES	 2048
#define FLAGS		 (MSG_NOSIGNAL | MSG_DONTWAIT)
#define FILE_CHUNK	 (1u << 20)
#define FILE_PER_TURN	 (8u << 20)
#define QUEUE_KEPT_BYTES 4096

bool http_out_empty(const struct http_conn *c)
{
	return c->out.len == 0 && c->file_fd < 0;
}

/* Nothing more is sent.  The handler may be on the stack: it learns of this from the loop. */
static void broken(struct http_conn *c)
{
	c->broken = true;
	c->blocked = false;
	buf_clear(&c->out);
	c->file_fd = fd_close(c->file_fd);
	http_conn_kick(c);
}

static void keep(struct http_conn *c, const struct iovec *iov, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (buf_append(&c->out, iov[i].iov_base, iov[i].iov_len) < 0) {
			broken(c);
			return;
		}
	}
}

/* Drops the first `sent` bytes of the queue and the pieces; what is left of the pieces is queued.
 */
static void keep_unsent(struct http_conn *c, const struct iovec *iov, size_t n, size_t sent)
{
	size_t from_queue = MIN(sent, c->out.len);

	buf_consume(&c->out, from_queue);
	sent -= from_queue;
	for (size_t i = 0; i < n && !c->broken; i++) {
		size_t skip = MIN(sent, iov[i].iov_len);
		struct iovec left = {(char *)iov[i].iov_base + skip, iov[i].iov_len - skip};

		sent -= skip;
		if (left.iov_len)
			keep(c, &left, 1);
	}
}

void http_out_write(struct http_conn *c, const struct iovec *iov, size_t n)
{
	struct iovec all[PIECES_MAX + 1];
	struct msghdr m = {.msg_iov = all};
	size_t total = c->out.len;
	ssize_t sent;

	if (c->dead || c->broken)
		return;
	if (c->blocked || c->file_fd >= 0 || n > PIECES_MAX) {
		keep(c, iov, n);
		return;
	}
	if (c->out.len)
		all[m.msg_iovlen++] = (struct iovec){(void *)buf_view(&c->out).p, c->out.len};
	for (size_t i = 0; i < n; i++) {
		all[m.msg_iovlen++] = iov[i];
		total += iov[i].iov_len;
	}
	if (total == 0)
		return;
	/* A head and a few bytes behind it: to copy them is cheaper than to send two pieces. */
	if (c->out.len && total <= SMALL_BYTES) {
		keep(c, iov, n);
		if (c->broken)
			return;
		all[0] = (struct iovec){(void *)buf_view(&c->out).p, c->out.len};
		m.msg_iovlen = 1;
		n = 0;
	}
	do {
		sent = m.msg_iovlen == 1 ? send(c->fd, all[0].iov_base, all[0].iov_len, FLAGS)
					 : sendmsg(c->fd, &m, FLAGS);
	} while (sent < 0 && errno == EINTR);
	if (sent < 0 && errno != EAGAIN) {
		broken(c);
		return;
	}
	sent = MAX(sent, (ssize_t)0);
	c->blocked = (size_t)sent < total;
	keep_unsent(c, iov, n, (size_t)sent);
}

/* 1 = done, 0 = would block or had its share, -1 = broken. */
static int flush_queue(struct http_conn *c)
{
	while (c->out.len) {
		struct view v = buf_view(&c->out);
		ssize_t n = send(c->fd, v.p, v.len,
				 MSG_NOSIGNAL | MSG_DONTWAIT | (c->file_fd >= 0 ? MSG_MORE : 0));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		buf_consume(&c->out, (size_t)n);
	}
	buf_shrink(&c->out, QUEUE_KEPT_BYTES);
	return 1;
}

static int flush_file(struct http_conn *c)
{
	uint64_t share = FILE_PER_TURN;

	while (c->file_left && share) {
		off_t at = (off_t)c->file_offset;
		uint64_t part = MIN(c->file_left, share);
		size_t want = (size_t)MIN(part, (uint64_t)FILE_CHUNK);
		ssize_t n = sendfile(c->fd, c->file_fd, &at, want);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0)
			return -1; /* the file has shrunk, or the client has gone */
		c->file_offset += (uint64_t)n;
		c->file_left -= (uint64_t)n;
		share -= (uint64_t)n;
	}
	return c->file_left == 0;
}

void http_out_flush(struct http_conn *c)
{
	int r = flush_queue(c);

	if (r > 0 && c->file_fd >= 0) {
		r = flush_file(c);
		if (r > 0)
			c->file_fd = fd_close(c->file_fd);
	}
	if (r < 0) {
		broken(c);
		return;
	}
	c->blocked = r == 0;
}

void http_out_error(struct http_conn *c, int status, const char *code, const char *message)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(4096), head = BUF_INIT(4096);
	struct json_writer w;
	struct iovec iov[2];

	c->close_after = true;
	json_writer_init(&w, &body);
	json_write_object(&w);
	json_put_cstr(&w, "code", code);
	json_put_cstr(&w, "message", message);
	json_write_object_end(&w);
	if (json_writer_end(&w) < 0 ||
	    buf_printf(&head,
		       "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: application/json\r\n"
		       "Content-Length: %zu\r\n%sConnection: close\r\n\r\n",
		       status, http1_reason(status), http_server_date(c->server), body.len,
		       status == 503 ? "Retry-After: 1\r\n" : "") < 0)
		return;
	iov[0] = (struct iovec){(void *)buf_view(&head).p, head.len};
	iov[1] = (struct iovec){(void *)buf_view(&body).p, body.len};
	http_out_write(c, iov, 2);
}
