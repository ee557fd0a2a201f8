/*
 * sys/original_dst.c - asks the connection tracking of the socket's own namespace.
 */
#include "sys/original_dst.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/netfilter_ipv4.h>

#include "base/err.h"

#ifndef IP6T_SO_ORIGINAL_DST
#define IP6T_SO_ORIGINAL_DST 80
#endif

int original_dst(int fd, struct sockaddr_storage *ret, struct err *e)
{
	struct sockaddr_storage local = {0};
	socklen_t len = sizeof(local);
	int r;

	if (getsockname(fd, (struct sockaddr *)&local, &len) < 0)
		return err_set(e, -errno, "getsockname: %m");
	memset(ret, 0, sizeof(*ret));
	len = sizeof(*ret);
	if (local.ss_family == AF_INET6)
		r = getsockopt(fd, SOL_IPV6, IP6T_SO_ORIGINAL_DST, ret, &len);
	else
		r = getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, ret, &len);
	if (r < 0)
		return err_set(e, -errno, "ask where a connection was meant to go: %m");
	return 0;
}
