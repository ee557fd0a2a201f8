/*
 * box/netwatch.c - sockets on loopback and netlink sockets of a namespace; nft loads its table.
 */
#include "box/netwatch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/fd.h"
#include "sys/nfset.h"
#include "sys/tool.h"

#define BACKLOG 1024

/* A port that is free for UDP may be taken for TCP; so often in a row is a fault. */
#define TRIES 16

void netwatch_init(struct netwatch *w)
{
	memset(w, 0, sizeof(*w));
	for (size_t i = 0; i < ARRAY_LEN(w->fds); i++)
		w->fds[i] = -1;
}

void netwatch_close(struct netwatch *w)
{
	for (size_t i = 0; i < ARRAY_LEN(w->fds); i++)
		w->fds[i] = fd_close(w->fds[i]);
}

static int open_netlink(int protocol, int *ret, struct err *e)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);

	if (fd < 0)
		return err_set(e, -errno, "open netlink (%d): %m", protocol);
	*ret = fd;
	return 0;
}

/* Bound, and if it is a stream, listening.  Successors share the port with who still answers there,
 * which the kernel allows to the same user alone. */
static int open_port(int type, uint16_t *port, int *ret)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(*port)};
	osb_cleanup(fd_closep) int fd = -1;
	socklen_t len = sizeof(a);
	int on = 1;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0)
		return -errno;
	if (type == SOCK_STREAM && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    (type == SOCK_STREAM && listen(fd, BACKLOG) < 0) ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return -errno;
	*port = ntohs(a.sin_port);
	*ret = take_fd(fd);
	return 0;
}

/* One port for both. */
static int open_dns(struct netwatch *w)
{
	int *udp = &w->fds[WARDEN_NETWATCH_DNS_UDP], *tcp = &w->fds[WARDEN_NETWATCH_DNS_TCP];
	int r = -EADDRINUSE;

	for (int i = 0; r == -EADDRINUSE && i < TRIES; i++) {
		if (i > 0)
			w->dns_port = 0; /* any */
		*udp = fd_close(*udp);
		r = open_port(SOCK_DGRAM, &w->dns_port, udp);
		if (r == 0)
			r = open_port(SOCK_STREAM, &w->dns_port, tcp);
	}
	return r;
}

static int open_http(struct netwatch *w)
{
	int *http = &w->fds[WARDEN_NETWATCH_HTTP];
	int r = open_port(SOCK_STREAM, &w->http_port, http);

	if (r != -EADDRINUSE)
		return r;
	w->http_port = 0;
	return open_port(SOCK_STREAM, &w->http_port, http);
}

int netwatch_open(struct netwatch *w, struct err *e)
{
	int r = nfset_open(&w->fds[WARDEN_NETWATCH_SETS], e);

	if (r == 0)
		r = open_netlink(NETLINK_NETFILTER, &w->fds[WARDEN_NETWATCH_LOG], e);
	if (r == 0)
		r = open_netlink(NETLINK_SOCK_DIAG, &w->fds[WARDEN_NETWATCH_DIAG], e);
	if (r == 0) {
		r = open_dns(w);
		if (r == 0)
			r = open_http(w);
		if (r < 0)
			err_set(e, r, "ports of the network's filter: %s", strerror(-r));
	}
	if (r < 0)
		netwatch_close(w);
	return r;
}

int netwatch_load(struct view table, struct err *e)
{
	static const char *const argv[] = {"nft", "-f", "-", NULL};
	char said[160];
	int r = tool_run(argv, table, said, sizeof(said), e);

	if (r <= 0)
		return r;
	said[strcspn(said, "\n")] = '\0';
	return err_set(e, -EPERM, "nft refuses the table: %s", said);
}
