/*
 * server/api_tunnel.c - GET /sandboxes/{id}/tunnel/{port} with "Upgrade: tcp".
 *
 * The port is connected first, so that a refusal is still an answer of HTTP; then both ends are
 * relayed byte for byte.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/relay.h"
#include "runtime/runtime.h"
#include "server/app.h"
#include "server/endpoints.h"
#include "server/exchange.h"
#include "server/failure.h"
#include "server/routes.h"
#include "server/sandboxes.h"
#include "server/tunnels.h"

#define CONNECT_MS  10000
#define TUNNELS_MAX 4096

struct tunnels {
	struct loop *loop;
	struct list all;
	size_t n;
};

struct tunnel {
	struct list link;
	struct tunnels *all;
	struct http_exchange *x; /* NULL once it is relayed */
	unsigned port;
	int fd; /* towards the sandbox, on its way */
	struct loop_fd *watch;
	struct loop_timer *patience;
	struct relay *relay;
};

static void tunnel_free(struct tunnel *t)
{
	list_remove(&t->link);
	t->all->n--;
	loop_fd_free(t->watch);
	loop_timer_free(t->patience);
	relay_free(t->relay);
	fd_close(t->fd);
	free(t);
}

struct tunnels *tunnels_new(struct loop *l)
{
	struct tunnels *all = mem_new(struct tunnels);

	all->loop = l;
	list_init(&all->all);
	return all;
}

void tunnels_free(struct tunnels *all)
{
	if (!all)
		return;
	list_each_safe (it, next, &all->all)
		tunnel_free(list_entry(it, struct tunnel, link));
	free(all);
}

/* ---- from connected to relayed ---- */

static void fail(struct tunnel *t, int problem)
{
	struct http_exchange *x = t->x;
	unsigned port = t->port;

	http_on_gone(x, NULL, NULL);
	tunnel_free(t);
	if (problem == ECONNREFUSED)
		http_reply_error(x, 502, "BACKEND_CONNECTION_FAILED",
				 "nothing listens on port %u in the sandbox", port);
	else
		http_reply_error(x, 502, "BACKEND_CONNECTION_FAILED",
				 "port %u in the sandbox cannot be reached: %s", port,
				 strerror(problem));
}

static void on_relayed(void *arg)
{
	tunnel_free(arg);
}

static void become_relay(struct tunnel *t)
{
	struct buf rest;
	struct err e = ERR_NONE;
	int client;

	loop_fd_free(take_ptr(t->watch));
	loop_timer_free(take_ptr(t->patience));
	http_on_gone(t->x, NULL, NULL);
	http_reply_header(t->x, "Upgrade", VIEW("tcp"));
	client = http_upgrade(t->x, 101, &rest);
	t->x = NULL;
	if (relay_new(t->all->loop, client, &rest, take_fd(t->fd), NULL, /* idle_ms= */ 0,
		      on_relayed, t, &t->relay, &e) < 0)
		tunnel_free(t);
}

static void on_connected(void *arg, int fd, unsigned events)
{
	struct tunnel *t = arg;
	socklen_t len = sizeof(int);
	int problem = 0;

	(void)events;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &len) < 0)
		problem = errno;
	if (problem)
		fail(t, problem);
	else
		become_relay(t);
}

static void on_impatience(void *arg)
{
	fail(arg, ETIMEDOUT);
}

static void on_gone(struct http_exchange *x, void *arg)
{
	(void)x;
	tunnel_free(arg);
}

static void begin(struct http_exchange *x, struct tunnels *all, unsigned port, int fd)
{
	struct tunnel *t = mem_new(struct tunnel);
	struct err e = ERR_NONE;

	t->all = all;
	t->x = x;
	t->port = port;
	t->fd = fd;
	list_push_back(&all->all, &t->link);
	all->n++;
	http_on_gone(x, on_gone, t);
	t->patience = loop_timer_new(all->loop, on_impatience, t);
	loop_timer_start(t->patience, CONNECT_MS);
	if (loop_fd_new(all->loop, fd, on_connected, t, &t->watch, &e) < 0)
		fail(t, -e.code);
	else
		loop_fd_want(t->watch, LOOP_WRITE);
}

/* ---- the request ---- */

struct asked {
	struct waiting *waiting;
	struct tunnels *all;
	unsigned port;
};

static void opened(void *arg, int fd, const struct err *e)
{
	struct asked *a = arg;
	struct http_exchange *x = waiting_end(a->waiting);

	if (!x)
		fd_close(fd);
	else if (e)
		http_reply_error(x, 502, "BACKEND_CONNECTION_FAILED",
				 "port %u in the sandbox cannot be reached: %s", a->port, e->msg);
	else
		begin(x, a->all, a->port, fd);
	free(a);
}

static bool wants_tcp(const struct http_exchange *x)
{
	struct view upgrade;

	return http_head(x)->upgrade && http_header(x, "Upgrade", &upgrade) &&
	       view_iis(upgrade, "tcp");
}

static void open_tunnel(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct failure f = FAILURE_NONE;
	struct sandbox *b;
	struct asked *a;
	uint16_t port;

	if (endpoints_port(route_param(x, "port"), &port, &f) < 0) {
		failure_reply(x, &f);
		return;
	}
	b = exchange_sandbox(x, app);
	if (!b)
		return;
	if (!wants_tcp(x)) {
		http_reply_header(x, "Upgrade", VIEW("tcp"));
		http_reply_error(x, 426, "SANDBOX::INVALID_PARAMETER",
				 "a tunnel is asked for with Connection: Upgrade and Upgrade: tcp");
	} else if (b->state != SANDBOX_RUNNING) {
		http_reply_error(x, 409, "SANDBOX::INVALID_STATE",
				 "sandbox '%s' is %s, not Running", b->id,
				 sandbox_state_name(b->state));
	} else if (app->tunnels->n >= TUNNELS_MAX) {
		http_reply_header(x, "Retry-After", VIEW("1"));
		http_reply_error(x, 503, "SANDBOX::TOO_MANY_TUNNELS",
				 "there are %d tunnels, as many as this server has", TUNNELS_MAX);
	} else {
		sandboxes_accessed(app->sandboxes, b);
		a = mem_new(struct asked);
		a->waiting = waiting_new(x, app);
		a->all = app->tunnels;
		a->port = port;
		app->runtime->ops->connect(app->runtime, b->id, port, opened, a);
	}
}

const struct route api_tunnel_routes[] = {
	{"GET", "/sandboxes/{id}/tunnel/{port}", open_tunnel, 0},
	{NULL, NULL, NULL, 0},
};
