/*
 * cli/cmd_forward.c - osb port-forward: ports of a sandbox as ports of this machine.
 *
 * One thread a connection: it waits for both ends and carries bytes between them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/view.h"
#include "cli/cli.h"
#include "cli/commands.h"

#define PORTS_MAX 16
#define CONNS_MAX 256
#define BLOCK	  65536

struct forward {
	uint16_t local, remote;
	int fd; /* listens */
};

struct conn {
	struct cli *cli;
	uint16_t remote;
	int fd;
};

static atomic_int conns;

/* ---- one connection ---- */

/* Local to remote; false when that direction is over, for good or for bad. */
static bool carry_out(struct conn *n, osb_tunnel *t)
{
	char block[BLOCK];
	ssize_t got = recv(n->fd, block, sizeof(block), 0);

	if (got > 0)
		return osb_tunnel_write(t, block, (size_t)got, &n->cli->call, NULL) == 0;
	(void)osb_tunnel_end(t, NULL);
	return false;
}

static bool carry_in(struct conn *n, osb_tunnel *t)
{
	char block[BLOCK];
	size_t got = 0, done = 0;

	if (osb_tunnel_read(t, block, sizeof(block), &n->cli->call, &got, NULL) < 0 || got == 0) {
		(void)shutdown(n->fd, SHUT_WR);
		return false;
	}
	while (done < got) {
		ssize_t sent = send(n->fd, block + done, got - done, MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			return false;
		done += sent > 0 ? (size_t)sent : 0;
	}
	return true;
}

static void carry(struct conn *n, osb_tunnel *t)
{
	bool out = true, in = true;

	while (out || in) {
		bool pending = in && osb_tunnel_pending(t);
		struct pollfd p[] = {
			{.fd = in ? osb_tunnel_fd(t) : -1, .events = POLLIN},
			{.fd = out ? n->fd : -1, .events = POLLIN},
		};

		if (poll(p, ARRAY_LEN(p), pending ? 0 : -1) < 0 && errno != EINTR)
			return;
		if (out && p[1].revents)
			out = carry_out(n, t);
		if (in && (pending || p[0].revents))
			in = carry_in(n, t);
	}
}

static void *serve(void *arg)
{
	struct conn *n = arg;
	osb_tunnel *t = NULL;
	osb_error e;

	if (osb_tunnel_open(n->cli->box, n->remote, &n->cli->call, &t, &e) < 0)
		fprintf(stderr, "osb: %s\n", e.message);
	else
		carry(n, t);
	osb_tunnel_close(t);
	fd_close(n->fd);
	free(n);
	(void)atomic_fetch_sub(&conns, 1);
	return NULL;
}

static void take(struct cli *c, const struct forward *f)
{
	int fd = accept4(f->fd, NULL, NULL, SOCK_CLOEXEC), on = 1;
	struct conn *n;
	pthread_t thread;

	if (fd < 0)
		return;
	if (atomic_fetch_add(&conns, 1) >= CONNS_MAX) {
		(void)atomic_fetch_sub(&conns, 1);
		fd_close(fd);
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	n = mem_new(struct conn);
	*n = (struct conn){.cli = c, .remote = f->remote, .fd = fd};
	if (pthread_create(&thread, NULL, serve, n) != 0) {
		(void)atomic_fetch_sub(&conns, 1);
		fd_close(fd);
		free(n);
		return;
	}
	(void)pthread_detach(thread);
}

/* ---- ports ---- */

static bool read_port(struct view text, bool may_be_0, uint16_t *ret)
{
	uint32_t n;

	if (!num_parse_u32(text, &n) || n > UINT16_MAX || (n == 0 && !may_be_0))
		return false;
	*ret = (uint16_t)n;
	return true;
}

/* "LOCAL:REMOTE", or one number for both; ":REMOTE" takes any that is free. */
static bool read_forward(const char *text, struct forward *ret)
{
	struct view v = view_of(text);
	size_t colon = view_find(v, ':');

	if (colon == v.len)
		return read_port(v, false, &ret->remote) && read_port(v, false, &ret->local);
	ret->local = 0;
	return (colon == 0 || read_port(view_first(v, colon), true, &ret->local)) &&
	       read_port(view_skip(v, colon + 1), false, &ret->remote);
}

static int listen_on(struct cli *c, const char *address, struct forward *f)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(f->local)};
	socklen_t len = sizeof(a);
	int on = 1;

	if (inet_pton(AF_INET, address, &a.sin_addr) != 1)
		return cli_usage(c, "--address: '%s' is no IPv4 address", address);
	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (f->fd < 0 || setsockopt(f->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(f->fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(f->fd, 64) < 0 ||
	    getsockname(f->fd, (struct sockaddr *)&a, &len) < 0)
		return cli_error(c, "listen on %s port %u: %s", address, f->local, strerror(errno));
	f->local = ntohs(a.sin_port);
	printf("Forwarding from %s:%u -> %u\n", address, f->local, f->remote);
	return fflush(stdout) ? CLI_FAILED : 0;
}

static int wait_for_connections(struct cli *c, const struct forward *f, size_t n)
{
	struct pollfd p[PORTS_MAX];

	for (;;) {
		for (size_t i = 0; i < n; i++)
			p[i] = (struct pollfd){.fd = f[i].fd, .events = POLLIN};
		if (poll(p, n, -1) < 0) {
			/* Interrupted: that is how it ends. */
			if (cli_pause(c, 0) == CLI_INTERRUPTED)
				return 0;
			continue;
		}
		for (size_t i = 0; i < n; i++)
			if (p[i].revents)
				take(c, &f[i]);
	}
}

int port_forward(struct cli *c)
{
	const char *address = cli_flag(c, "address") ? cli_flag(c, "address") : "127.0.0.1";
	struct forward f[PORTS_MAX];
	size_t n = c->args_n - 1, opened = 0;
	int code = 0;

	if (n > PORTS_MAX)
		return cli_usage(c, "at most %d ports", PORTS_MAX);
	for (size_t i = 0; i < n; i++)
		if (!read_forward(c->args[i + 1], &f[i]))
			return cli_usage(c, "'%s' is not written LOCAL:REMOTE", c->args[i + 1]);
	for (; opened < n && code == 0; opened++)
		code = listen_on(c, address, &f[opened]);
	if (code == 0)
		code = wait_for_connections(c, f, n);
	for (size_t i = 0; i < opened; i++)
		fd_close(f[i].fd);
	/* Threads still use the sandbox: the end of the program is theirs. */
	if (atomic_load(&conns) > 0)
		_exit(code);
	return code;
}
