/*
 * sys/sock_diag.c - one dump request; the kernel makes the list while it is read.
 */
#include "sys/sock_diag.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"

#define CONNECTIONS_MAX 100000u
#define ANSWER_BYTES	32768

/* All in which somebody still speaks, or waits to. */
#define STATES                                                                                     \
	(1u << TCP_ESTABLISHED | 1u << TCP_SYN_SENT | 1u << TCP_FIN_WAIT1 | 1u << TCP_FIN_WAIT2 |  \
	 1u << TCP_CLOSE_WAIT)

int sock_diag_open(int *ret, struct err *e)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);

	if (fd < 0)
		return err_set(e, -errno, "open sock_diag: %m");
	*ret = fd;
	return 0;
}

static void tell(const struct nlmsghdr *h, sock_diag_fn *fn, void *arg)
{
	const struct inet_diag_msg *m = NLMSG_DATA(h);
	const uint8_t *far = (const uint8_t *)m->id.idiag_dst;
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
	uint8_t bytes[16] = {0};

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)))
		return;
	if (m->idiag_family == AF_INET6 && memcmp(far, mapped, sizeof(mapped)) != 0) {
		fn(arg, true, far);
		return;
	}
	memcpy(bytes, m->idiag_family == AF_INET6 ? far + sizeof(mapped) : far, 4);
	fn(arg, false, bytes);
}

/* An earlier owner of the socket may not have read to the end; while a list is unfinished there
 * cannot be another. */
static void drain(int fd)
{
	_Alignas(8) char answer[ANSWER_BYTES];

	while (recv(fd, answer, sizeof(answer), MSG_DONTWAIT) > 0)
		;
}

int sock_diag_each(int fd, bool v6, sock_diag_fn *fn, void *arg, struct err *e)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 ask;
	} m = {
		.head = {.nlmsg_len = sizeof(m),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.ask = {.sdiag_family = v6 ? AF_INET6 : AF_INET,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = STATES},
	};
	_Alignas(8) char answer[ANSWER_BYTES];
	unsigned told = 0;

	drain(fd);
	if (send(fd, &m, sizeof(m), MSG_DONTWAIT) < 0)
		return err_set(e, -errno, "list connections: %m");
	for (;;) {
		struct nlmsghdr *h = (struct nlmsghdr *)answer;
		ssize_t n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
		size_t left = n > 0 ? (size_t)n : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(e, n < 0 ? -errno : -EIO, "list connections: %m");
		for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return 0;
			if (h->nlmsg_type == NLMSG_ERROR)
				return err_set(e, -EIO, "list connections: refused");
			if (told++ < CONNECTIONS_MAX)
				tell(h, fn, arg);
		}
	}
}
