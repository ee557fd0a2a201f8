/*
 * net/http_adopt.c - see http_adopt.h.
 */
#include "net/http_adopt.h"

#include "base/fd.h"
#include "net/http_int.h"

void http_server_adopt_for(struct http_server *s, int fd, void *owner, void (*closed)(void *owner))
{
	struct http_conn *c = NULL;

	if (s->draining || s->conns_n >= s->limits.connections)
		fd_close(fd);
	else
		c = http_conn_new(s, fd, /* peer= */ NULL, /* flags= */ 0);
	if (!c) {
		closed(owner);
		return;
	}
	c->owner = owner;
	c->closed = closed;
}

void *http_owner(const struct http_exchange *x)
{
	return x->conn->owner;
}
