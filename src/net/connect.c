/*
 * net/connect.c - non-blocking connects to IP addresses and unix sockets.
 */
#include "net/connect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "net/loop.h"

#define RETRY_MS 10 /* a unix listener's queue was full: it cannot be waited for */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un un;
};

struct connect {
	struct loop *loop;
	connect_fn *fn;
	void *arg;
	int fd;
	union address to;
	socklen_t to_len;
	uint32_t mark;
	struct loop_fd *watch;
	struct loop_timer *deadline;
	struct loop_timer *retry;
};

static int parse_address(struct connect *c, const struct connect_to *to, struct err *e)
{
	if (to->unix_path) {
		if (strlen(to->unix_path) >= sizeof(c->to.un.sun_path))
			return err_set(e, -ENAMETOOLONG, "socket path '%s' is too long",
				       to->unix_path);
		c->to.un.sun_family = AF_UNIX;
		memcpy(c->to.un.sun_path, to->unix_path, strlen(to->unix_path) + 1);
		c->to_len = sizeof(c->to.un);
		return 0;
	}
	if (to->ip && inet_pton(AF_INET, to->ip, &c->to.v4.sin_addr) == 1) {
		c->to.v4.sin_family = AF_INET;
		c->to.v4.sin_port = htons(to->port);
		c->to_len = sizeof(c->to.v4);
		return 0;
	}
	if (to->ip && inet_pton(AF_INET6, to->ip, &c->to.v6.sin6_addr) == 1) {
		c->to.v6.sin6_family = AF_INET6;
		c->to.v6.sin6_port = htons(to->port);
		c->to_len = sizeof(c->to.v6);
		return 0;
	}
	return err_set(e, -EINVAL, "'%s' is not an IP address", to->ip ? to->ip : "");
}

/* Tells the end of the attempt; the owner frees us in it. */
static void tell(struct connect *c, int code)
{
	struct err e = ERR_NONE;

	loop_fd_free(c->watch);
	c->watch = NULL;
	loop_timer_stop(c->deadline);
	if (code < 0)
		(void)err_set(&e, code, "connect: %s", strerror(-code));
	c->fn(c->arg, code < 0 ? -1 : take_fd(c->fd), &e);
}

static void on_writable(void *arg, int fd, unsigned events)
{
	struct connect *c = arg;
	int error = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof(error)}) < 0)
		error = errno;
	tell(c, -error);
}

static int attempt(struct connect *c, struct err *e)
{
	int family = c->to.any.sa_family;
	int r;

	c->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return err_set(e, -errno, "make a socket: %m");
	if (c->mark && setsockopt(c->fd, SOL_SOCKET, SO_MARK, &c->mark, sizeof(c->mark)) < 0)
		return err_set(e, -errno, "mark a socket: %m");
	if (family != AF_UNIX)
		(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	if (connect(c->fd, &c->to.any, c->to_len) < 0 && errno != EINPROGRESS) {
		if (errno == EAGAIN) {
			c->fd = fd_close(c->fd);
			loop_timer_start(c->retry, RETRY_MS);
			return 0;
		}
		return err_set(e, -errno, "connect: %m");
	}
	r = loop_fd_new(c->loop, c->fd, on_writable, c, &c->watch, e);
	if (r == 0)
		loop_fd_want(c->watch, LOOP_WRITE);
	return r;
}

static void on_retry(void *arg)
{
	struct err e = ERR_NONE;
	int r = attempt(arg, &e);

	if (r < 0)
		tell(arg, r);
}

static void on_deadline(void *arg)
{
	tell(arg, -ETIMEDOUT);
}

int connect_new(struct loop *l, const struct connect_to *to, connect_fn *fn, void *arg,
		struct connect **ret, struct err *e)
{
	struct connect *c = mem_new(struct connect);
	int r;

	c->loop = l;
	c->fn = fn;
	c->arg = arg;
	c->fd = -1;
	c->mark = to->mark;
	c->deadline = loop_timer_new(l, on_deadline, c);
	c->retry = loop_timer_new(l, on_retry, c);
	r = parse_address(c, to, e);
	r = r ? r : attempt(c, e);
	if (r < 0) {
		connect_free(c);
		return r;
	}
	if (to->timeout_ms)
		loop_timer_start(c->deadline, to->timeout_ms);
	*ret = c;
	return 0;
}

void connect_free(struct connect *c)
{
	if (!c)
		return;
	loop_fd_free(c->watch);
	loop_timer_free(c->deadline);
	loop_timer_free(c->retry);
	fd_close(c->fd);
	free(c);
}
