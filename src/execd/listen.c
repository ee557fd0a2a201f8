/*
 * execd/listen.c - opens what the daemon was told to listen on.
 */
#include "execd/listen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "execd/options.h"
#include "net/http_server.h"

#define SOCKET_MODE 0660

static int listen_tcp(struct http_server *server, const char *address, struct err *e)
{
	const char *colon = strrchr(address, ':');
	osb_cleanup(mem_freep) char *ip = NULL;
	uint32_t port;
	size_t len;

	if (!colon || !num_parse_u32(view_of(colon + 1), &port) || port > UINT16_MAX)
		return err_set(e, -EINVAL, "'%s' is not IP:PORT", address);
	len = (size_t)(colon - address);
	/* [::1]:80 is how people write it. */
	if (len >= 2 && address[0] == '[' && address[len - 1] == ']')
		ip = mem_strndup(address + 1, len - 2);
	else
		ip = mem_strndup(address, len);
	if (http_server_listen_tcp(server, ip, (uint16_t)port, e) < 0)
		return e->code;
	log_line(LOG_INFO, "listening", LOG_S("ip", ip), LOG_I("port", http_server_port(server)));
	return 0;
}

static int listen_one(struct http_server *server, const char *address, struct err *e)
{
	uint32_t fd;

	if (strncmp(address, "tcp:", 4) == 0)
		return listen_tcp(server, address + 4, e);
	if (strncmp(address, "unix:", 5) == 0) {
		if (http_server_listen_unix(server, address + 5, SOCKET_MODE, e) < 0)
			return e->code;
		log_line(LOG_INFO, "listening", LOG_S("path", address + 5));
		return 0;
	}
	if (!num_parse_u32(view_of(address + 3), &fd) || fd < 3 || fd > INT32_MAX)
		return err_set(e, -EINVAL, "'%s' is not fd:N with N from 3 on", address);
	if (http_server_listen_fd(server, (int)fd, e) < 0)
		return e->code;
	log_line(LOG_INFO, "listening", LOG_I("fd", fd));
	return 0;
}

int listen_all(struct http_server *server, const struct options *o, struct err *e)
{
	osb_cleanup(mem_freep) char *fallback = NULL;

	if (o->listen.len == 0) {
		fallback = mem_printf("0.0.0.0:%u", o->port);
		return listen_tcp(server, fallback, e);
	}
	for (size_t i = 0; i < o->listen.len; i++)
		if (listen_one(server, o->listen.v[i], e) < 0)
			return err_ctx(e, "--listen %s", o->listen.v[i]);
	return 0;
}
