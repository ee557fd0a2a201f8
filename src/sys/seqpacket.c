/*
 * sys/seqpacket.c - sendmsg and recvmsg with SCM_RIGHTS, lengths checked.
 */
#include "sys/seqpacket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/fd.h"

union control {
	struct cmsghdr align;
	char space[CMSG_SPACE(SEQPACKET_MAX_FDS * sizeof(int))];
};

int seqpacket_pair(int ret[2], struct err *e)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret) < 0)
		return err_set(e, -errno, "socketpair: %m");
	return 0;
}

int seqpacket_send(int fd, struct view data, const int *fds, size_t fds_n, struct err *e)
{
	struct iovec iov = {.iov_base = (void *)data.p, .iov_len = data.len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	union control c;
	struct cmsghdr *h;

	if (fds_n > SEQPACKET_MAX_FDS)
		return err_set(e, -EINVAL, "too many descriptors in one message");
	if (fds_n) {
		memset(&c, 0, sizeof(c));
		m.msg_control = &c;
		m.msg_controllen = CMSG_SPACE(fds_n * sizeof(int));
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(fds_n * sizeof(int));
		memcpy(CMSG_DATA(h), fds, fds_n * sizeof(int));
	}
	while (sendmsg(fd, &m, MSG_NOSIGNAL) < 0) {
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN)
			return -EAGAIN;
		return err_set(e, -errno, "send a message: %m");
	}
	return 0;
}

/* Every descriptor that came along is kept or closed: none may stay unnoticed. */
static void take_fds(struct msghdr *m, int ret_fds[SEQPACKET_MAX_FDS])
{
	size_t kept = 0;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		size_t n;

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
			if (kept < SEQPACKET_MAX_FDS)
				ret_fds[kept++] = fd;
			else
				fd_close(fd);
		}
	}
}

void seqpacket_close(int fds[SEQPACKET_MAX_FDS], size_t keep)
{
	for (size_t i = keep; i < SEQPACKET_MAX_FDS; i++)
		fds[i] = fd_close(fds[i]);
}

int seqpacket_receive(int fd, void *p, size_t size, int ret_fds[SEQPACKET_MAX_FDS], struct err *e)
{
	struct iovec iov = {.iov_base = p, .iov_len = size};
	union control c;
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &c,
		.msg_controllen = sizeof(c),
	};
	ssize_t n;

	for (size_t i = 0; i < SEQPACKET_MAX_FDS; i++)
		ret_fds[i] = -1;
	do {
		n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -EAGAIN : err_set(e, -errno, "receive a message: %m");
	take_fds(&m, ret_fds);
	if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		seqpacket_close(ret_fds, 0);
		return err_set(e, -EMSGSIZE, "a message was too large");
	}
	return (int)n;
}
