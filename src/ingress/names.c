/*
 * ingress/names.c - see names.h.
 */
#include "ingress/names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/err.h"

int names_look_up(const char *name, char ret[INET6_ADDRSTRLEN], struct err *e)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	const void *address;
	int r = getaddrinfo(name, NULL, &hints, &found);

	if (r != 0)
		return err_set(e, -EHOSTUNREACH, "look up '%s': %s", name, gai_strerror(r));
	address = found->ai_family == AF_INET
			  ? (const void *)&((struct sockaddr_in *)found->ai_addr)->sin_addr
			  : (const void *)&((struct sockaddr_in6 *)found->ai_addr)->sin6_addr;
	if (!inet_ntop(found->ai_family, address, ret, INET6_ADDRSTRLEN))
		r = err_set(e, -errno, "look up '%s': %m", name);
	freeaddrinfo(found);
	return r;
}
