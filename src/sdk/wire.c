/*
 * sdk/wire.c - sockets that never block and a poll(2) that waits for them.
 */
#include "sdk/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sdk/address.h"
#include "sdk/cancel.h"
#include "sdk/wire_int.h"

#define COPY_BYTES (128u << 10)

int wire_wait(int fd, short events, const struct wire_limit *limit, struct err *e)
{
	struct pollfd p[] = {
		{.fd = fd, .events = events},
		{.fd = limit->cancel ? limit->cancel->fd : -1, .events = POLLIN},
	};

	for (;;) {
		uint64_t now = clock_mono_us();
		int ms = -1, n;

		if (limit->deadline_us && now >= limit->deadline_us)
			return err_set(e, -ETIMEDOUT, "the server did not answer in time");
		if (limit->deadline_us)
			ms = (int)MIN((limit->deadline_us - now + 999) / 1000, (uint64_t)INT32_MAX);
		n = poll(p, ARRAY_LEN(p), ms);
		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "poll: %m");
		if (n > 0 && p[1].revents)
			return err_set(e, -ECANCELED, "the call was cancelled");
		if (n > 0)
			return 0;
	}
}

/* ---- opening ---- */

static int finish_connect(int fd, const struct wire_limit *limit, struct err *e)
{
	socklen_t len = sizeof(int);
	int problem = 0, r;

	r = wire_wait(fd, POLLOUT, limit, e);
	if (r < 0)
		return r;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &len) < 0)
		problem = errno;
	return problem ? err_set(e, -problem, "%s", strerror(problem)) : 0;
}

static int connect_to(const struct sockaddr *to, socklen_t len, const struct wire_limit *limit,
		      int *ret, struct err *e)
{
	osb_cleanup(fd_closep) int fd =
		socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, r = 0;

	if (fd < 0)
		return err_set(e, -errno, "socket: %m");
	if (to->sa_family != AF_UNIX)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, to, len) < 0)
		r = errno == EINPROGRESS ? finish_connect(fd, limit, e) : err_set(e, -errno, "%m");
	if (r < 0)
		return r;
	*ret = take_fd(fd);
	return 0;
}

static int connect_unix(const struct address *a, const struct wire_limit *limit, int *ret,
			struct err *e)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	memcpy(to.sun_path, a->unix_path, sizeof(to.sun_path));
	return connect_to((struct sockaddr *)&to, sizeof(to), limit, ret, e);
}

static int connect_tcp(const struct address *a, const struct wire_limit *limit, int *ret,
		       struct err *e)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
	struct addrinfo *all = NULL;
	char port[8];
	int r;

	snprintf(port, sizeof(port), "%u", a->port);
	r = getaddrinfo(a->host, port, &hints, &all);
	if (r == EAI_NONAME) {
		hints.ai_flags = AI_ADDRCONFIG;
		r = getaddrinfo(a->host, port, &hints, &all);
	}
	if (r != 0)
		return err_set(e, -EHOSTUNREACH, "%s", gai_strerror(r));
	r = -EHOSTUNREACH;
	for (struct addrinfo *it = all; it && r < 0; it = it->ai_next) {
		r = connect_to(it->ai_addr, it->ai_addrlen, limit, ret, e);
		if (r == -ETIMEDOUT || r == -ECANCELED)
			break;
	}
	freeaddrinfo(all);
	return r;
}

int wire_open(const struct address *a, struct wire_trust *trust, const struct wire_limit *limit,
	      struct wire **ret, struct err *e)
{
	struct wire *w = mem_new(struct wire);
	int r;

	w->fd = -1;
	r = a->unix_path[0] ? connect_unix(a, limit, &w->fd, e) : connect_tcp(a, limit, &w->fd, e);
	if (r == 0 && a->tls)
		r = wire_tls_begin(w, trust, a->host, limit, e);
	if (r < 0) {
		wire_close(w);
		return err_ctx(e, "connect to %s", a->unix_path[0] ? a->unix_path : a->authority);
	}
	*ret = w;
	return 0;
}

void wire_close(struct wire *w)
{
	if (!w)
		return;
	wire_tls_end(w);
	fd_close(w->fd);
	free(w);
}

/* ---- bytes ---- */

ssize_t wire_plain_write(struct wire *w, struct view bytes, const struct wire_limit *limit,
			 struct err *e)
{
	size_t done = 0;

	while (done < bytes.len) {
		ssize_t n = send(w->fd, bytes.p + done, bytes.len - done, MSG_NOSIGNAL);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EAGAIN && errno != EINTR)
			return err_set(e, -errno, "send: %m");
		else if (errno == EAGAIN && wire_wait(w->fd, POLLOUT, limit, e) < 0)
			return e->code;
	}
	return (ssize_t)done;
}

ssize_t wire_plain_read(struct wire *w, void *p, size_t n, const struct wire_limit *limit,
			struct err *e)
{
	for (;;) {
		ssize_t got = recv(w->fd, p, n, 0);

		if (got >= 0)
			return got;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return err_set(e, -errno, "receive: %m");
		if (wire_wait(w->fd, POLLIN, limit, e) < 0)
			return e->code;
	}
}

int wire_write(struct wire *w, struct view bytes, const struct wire_limit *limit, struct err *e)
{
	ssize_t n =
		w->tls ? wire_tls_write(w, bytes, limit, e) : wire_plain_write(w, bytes, limit, e);

	return n < 0 ? (int)n : 0;
}

ssize_t wire_read(struct wire *w, void *p, size_t n, const struct wire_limit *limit, struct err *e)
{
	return w->tls ? wire_tls_read(w, p, n, limit, e) : wire_plain_read(w, p, n, limit, e);
}

static ssize_t copy_file(struct wire *w, int fd, size_t n, const struct wire_limit *limit,
			 struct err *e)
{
	char block[16384];
	ssize_t got;

	do
		got = read(fd, block, MIN(n, sizeof(block)));
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_set(e, -EIO, "read the local file: %m");
	if (got > 0 && wire_write(w, view_mem(block, (size_t)got), limit, e) < 0)
		return e->code;
	return got;
}

ssize_t wire_send_file(struct wire *w, int fd, size_t n, const struct wire_limit *limit,
		       struct err *e)
{
	while (!w->tls && !w->no_sendfile) {
		ssize_t sent = sendfile(w->fd, fd, NULL, MIN(n, COPY_BYTES));

		if (sent >= 0)
			return sent;
		if (errno == EAGAIN) {
			if (wire_wait(w->fd, POLLOUT, limit, e) < 0)
				return e->code;
		} else if (errno == EINVAL || errno == ENOSYS || errno == EOVERFLOW) {
			w->no_sendfile = true; /* a pipe or a terminal */
		} else if (errno != EINTR) {
			return err_set(e, -errno, "send: %m");
		}
	}
	return copy_file(w, fd, n, limit, e);
}

int wire_end(struct wire *w, struct err *e)
{
	if (w->tls)
		return wire_tls_say_end(w, e);
	return shutdown(w->fd, SHUT_WR) < 0 ? err_set(e, -errno, "shutdown: %m") : 0;
}

bool wire_buffered(const struct wire *w)
{
	return wire_tls_pending(w);
}

bool wire_is_stale(struct wire *w)
{
	struct pollfd p = {.fd = w->fd, .events = POLLIN};

	return wire_tls_pending(w) || poll(&p, 1, 0) > 0;
}

int wire_fd(const struct wire *w)
{
	return w->fd;
}

void wire_sleep(uint64_t ms, struct osb_cancel *cancel)
{
	struct wire_limit until = {.deadline_us = clock_mono_us() + ms * 1000, .cancel = cancel};
	struct err ignored = ERR_NONE;

	if (wire_wait(-1, 0, &until, &ignored) < 0)
		return; /* as it should: at the time, or earlier */
}
