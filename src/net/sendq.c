/*
 * net/sendq.c - see sendq.h.
 */
#include "net/sendq.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define PIECES_MAX 8

void sendq_init(struct sendq *q, size_t max)
{
	buf_init(&q->buf, max);
}

void sendq_done(struct sendq *q)
{
	buf_done(&q->buf);
}

static ssize_t send_pieces(int fd, const struct iovec *iov, size_t n)
{
	struct iovec copy[PIECES_MAX];
	struct msghdr msg = {.msg_iov = copy, .msg_iovlen = n};
	ssize_t sent;

	memcpy(copy, iov, n * sizeof(*iov));
	do
		/* One piece is sent the cheaper way. */
		sent = n == 1 ? send(fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT)
			      : sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}

int sendq_write(struct sendq *q, int fd, const struct iovec *iov, size_t n)
{
	size_t skip = 0;

	assert(n <= PIECES_MAX);
	if (fd >= 0 && q->buf.len == 0) {
		ssize_t sent = send_pieces(fd, iov, n);

		if (sent < 0 && sent != -EAGAIN)
			return (int)sent;
		skip = sent < 0 ? 0 : (size_t)sent;
	}
	for (size_t i = 0; i < n; i++) {
		size_t done = MIN(skip, iov[i].iov_len);
		int r;

		skip -= done;
		if (done == iov[i].iov_len)
			continue;
		r = buf_append(&q->buf, (const char *)iov[i].iov_base + done,
			       iov[i].iov_len - done);
		if (r < 0)
			return r;
	}
	return 0;
}

ssize_t sendq_flush(struct sendq *q, int fd)
{
	struct view v = buf_view(&q->buf);
	ssize_t sent;

	if (v.len == 0)
		return 0;
	sent = send_pieces(fd, &(struct iovec){(void *)v.p, v.len}, 1);
	if (sent <= 0)
		return sent;
	buf_consume(&q->buf, (size_t)sent);
	if (q->buf.len == 0)
		buf_done(&q->buf);
	return sent;
}
