/*
 * net/tls_front.c - clients on their way through the handshake.
 */
#include "net/tls_front.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/tls.h"

struct tls_front {
	struct loop *loop;
	struct http_server *http;
	struct tls_server *tls;
	struct tls_bridges *bridges;
	size_t max;
	struct list comers;
	struct loop_timer *patience;
	void (*drained)(void *arg);
	void *drained_arg;
};

/* A client that shakes hands. */
struct comer {
	struct list link;
	struct tls_front *front;
	char peer[INET6_ADDRSTRLEN];
};

static void name_peer(int fd, char ret[INET6_ADDRSTRLEN])
{
	struct sockaddr_storage a = {0};
	socklen_t len = sizeof(a);

	ret[0] = '\0';
	if (getpeername(fd, (struct sockaddr *)&a, &len) < 0)
		return;
	if (a.ss_family == AF_INET)
		inet_ntop(AF_INET, &((struct sockaddr_in *)&a)->sin_addr, ret, INET6_ADDRSTRLEN);
	else if (a.ss_family == AF_INET6)
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&a)->sin6_addr, ret, INET6_ADDRSTRLEN);
}

static void comer_free(struct comer *c)
{
	list_remove(&c->link);
	free(c);
}

static void shaken(void *arg, int plain_fd, const struct err *e)
{
	struct comer *c = arg;

	if (plain_fd >= 0)
		http_server_adopt(c->front->http, plain_fd, c->peer);
	comer_free(c);
}

static void accepted(void *arg, int fd)
{
	struct tls_front *f = arg;
	struct comer *c;

	if (tls_bridges_count(f->bridges) >= f->max) {
		fd_close(fd);
		return;
	}
	c = mem_new(struct comer);
	c->front = f;
	name_peer(fd, c->peer);
	list_push_back(&f->comers, &c->link);
	(void)tls_accept(f->bridges, f->tls, fd, VIEW_NONE, shaken, c);
}

static void drained(void *arg)
{
	struct tls_front *f = arg;
	void (*fn)(void *arg) = take_ptr(f->drained);

	loop_timer_stop(f->patience);
	if (fn)
		fn(f->drained_arg);
}

struct tls_front *tls_front_new(struct loop *l, struct http_server *http, struct tls_server *tls,
				size_t max)
{
	struct tls_front *f = mem_new(struct tls_front);

	f->loop = l;
	f->http = http;
	f->tls = tls;
	f->max = max;
	f->bridges = tls_bridges_new(l);
	f->patience = loop_timer_new(l, drained, f);
	list_init(&f->comers);
	http_server_on_accept(http, accepted, f);
	return f;
}

void tls_front_drain(struct tls_front *f, uint64_t grace_ms, void (*done)(void *arg), void *arg)
{
	f->drained = done;
	f->drained_arg = arg;
	loop_timer_start(f->patience, grace_ms);
	tls_bridges_on_empty(f->bridges, drained, f);
}

void tls_front_free(struct tls_front *f)
{
	if (!f)
		return;
	tls_bridges_free(f->bridges);
	list_each_safe (it, tmp, &f->comers)
		comer_free(list_entry(it, struct comer, link));
	loop_timer_free(f->patience);
	free(f);
}
