/*
 * net/http_server.c - listeners, the set of connections, deadlines and draining.
 *
 * One timer serves all deadlines: it is set for the earliest, and looks at the connections when it
 * fires.  Without connections it is off, so an idle server makes no wake-ups.
 */
#include "net/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "codec/rfc3339.h"
#include "net/http_int.h"
#include "net/loop.h"

#define SCRATCH_BYTES	 (256 * 1024)
#define ACCEPTS_PER_TURN 64
#define REFUSED_MAX	 64 /* beyond the limit: still told why */
#define BACKLOG		 4096
#define TIMER_GRAIN_US	 20000

const struct http_limits http_limits_default = {
	.head_bytes = 64 * 1024,
	.arena_bytes = 1024 * 1024 + 256 * 1024,
	.queue_high_bytes = 256 * 1024,
	.connections = 4096,
	.idle_ms = 75 * 1000,
	.head_ms = 10 * 1000,
	.body_stall_ms = 30 * 1000,
	.write_stall_ms = 0,
};

/* ---- deadlines ---- */

void http_server_deadline(struct http_server *s, uint64_t due_us)
{
	uint64_t now = loop_now_us(s->loop), wait;

	if (due_us == 0 || (s->timer_due_us && s->timer_due_us <= due_us + TIMER_GRAIN_US))
		return;
	wait = due_us > now ? due_us - now : 0;
	s->timer_due_us = now + wait;
	loop_timer_start(s->timer, wait / 1000 + 1);
}

static void deadline_passed(void *arg)
{
	struct http_server *s = arg;
	uint64_t now = loop_now_us(s->loop), next = 0;

	s->timer_due_us = 0;
	list_each_safe (it, tmp, &s->conns) {
		struct http_conn *c = list_entry(it, struct http_conn, link);

		if (c->deadline_us && c->deadline_us <= now)
			http_conn_expired(c);
		else if (c->deadline_us && (!next || c->deadline_us < next))
			next = c->deadline_us;
	}
	http_server_deadline(s, next);
}

/* ---- connections ---- */

static void run_kicked(void *arg)
{
	struct http_server *s = arg;
	struct list turn;

	/* Those who kick themselves again meanwhile have their turn next time. */
	list_init(&turn);
	while (!list_empty(&s->kicked)) {
		struct list *it = s->kicked.next;

		list_remove(it);
		list_push_back(&turn, it);
	}
	while (!list_empty(&turn)) {
		struct list *it = turn.next;

		list_remove(it);
		http_conn_run(list_entry(it, struct http_conn, kick_link));
	}
}

static void tell_drained(struct http_server *s)
{
	void (*fn)(void *arg) = s->drained;

	s->drained = NULL;
	loop_timer_stop(s->drain_timer);
	if (fn)
		fn(s->drained_arg);
}

void http_server_forget(struct http_conn *c)
{
	struct http_server *s = c->server;

	list_remove(&c->link);
	list_remove(&c->kick_link);
	s->conns_n--;
	if (s->draining && s->conns_n == 0)
		loop_timer_start(s->drain_timer, 0);
}

const char *http_server_date(struct http_server *s)
{
	uint64_t now = clock_wall_ms() / 1000;

	if (now != s->date_s) {
		char text[RFC3339_MAX];

		rfc3339_format_http((int64_t)now, text);
		snprintf(s->date, sizeof(s->date), "%.39s", text);
		s->date_s = now;
	}
	return s->date;
}

/* ---- accepting ---- */

/* Out of descriptors: one is given up, so that the client can be turned away instead of left
 * waiting. */
static void turn_away(struct http_server *s, int listen_fd)
{
	int fd;

	s->spare_fd = fd_close(s->spare_fd);
	fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	fd_close(fd);
	s->spare_fd = open("/", O_PATH | O_CLOEXEC);
}

/* Whom there is no room for is told so, if there are not too many of them. */
static void take_connection(struct http_server *s, int fd, const char *peer, unsigned flags)
{
	if (s->conns_n >= s->limits.connections + REFUSED_MAX)
		fd_close(fd);
	else
		(void)http_conn_new(
			s, fd, peer,
			flags | (s->conns_n >= s->limits.connections ? HTTP_CONN_REFUSE : 0));
}

void http_server_on_accept(struct http_server *s, http_accepted_fn *fn, void *arg)
{
	s->accepted = fn;
	s->accepted_arg = arg;
}

void http_server_adopt(struct http_server *s, int fd, const char *peer)
{
	if (s->draining)
		fd_close(fd);
	else
		take_connection(s, fd, peer, HTTP_CONN_SECURE);
}

static void accept_some(void *arg, int fd, unsigned events)
{
	struct http_listener *l = arg;
	struct http_server *s = l->server;

	(void)events;
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (conn < 0 && (errno == EMFILE || errno == ENFILE)) {
			turn_away(s, fd);
			continue;
		}
		if (conn < 0 && errno == ECONNABORTED)
			continue;
		if (conn < 0)
			return;
		if (s->accepted)
			s->accepted(s->accepted_arg, conn);
		else
			take_connection(s, conn, /* peer= */ NULL, /* flags= */ 0);
	}
}

int http_server_listen_fd(struct http_server *s, int fd, struct err *e)
{
	struct http_listener *l = mem_new(struct http_listener);
	int r;

	l->server = s;
	l->fd = fd;
	list_push_back(&s->listeners, &l->link);
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	r = loop_fd_new(s->loop, fd, accept_some, l, &l->watch, e);
	if (r < 0)
		return r;
	loop_fd_want(l->watch, LOOP_READ);
	return 0;
}

static int parse_address(const char *ip, uint16_t port, struct sockaddr_storage *ret,
			 socklen_t *ret_len)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, ip, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		*ret_len = sizeof(*v4);
		return 0;
	}
	if (inet_pton(AF_INET6, ip, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		*ret_len = sizeof(*v6);
		return 0;
	}
	return -EINVAL;
}

static void remember_port(struct http_server *s, int fd)
{
	struct sockaddr_storage a = {0};
	socklen_t len = sizeof(a);

	if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return;
	if (a.ss_family == AF_INET)
		s->port = ntohs(((struct sockaddr_in *)&a)->sin_port);
	else if (a.ss_family == AF_INET6)
		s->port = ntohs(((struct sockaddr_in6 *)&a)->sin6_port);
}

int http_server_listen_tcp(struct http_server *s, const char *ip, uint16_t port, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct sockaddr_storage a = {0};
	socklen_t len;
	int on = 1;

	if (parse_address(ip, port, &a, &len) < 0)
		return err_set(e, -EINVAL, "'%s' is no IP address to listen on", ip);
	fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set(e, -errno, "socket: %m");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* Accepted sockets inherit it: small answers are not held back. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, BACKLOG) < 0)
		return err_set(e, -errno, "listen on %s port %u: %m", ip, port);
	remember_port(s, fd);
	return http_server_listen_fd(s, take_fd(fd), e);
}

/* A socket file that nobody listens on any more is in the way; one that answers is not ours to
 * take. */
static int clear_stale(const char *path, const struct sockaddr_un *a, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct stat st;

	if (lstat(path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, -EEXIST, "'%s' exists and is no socket", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 &&
	    (connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0 || errno == EAGAIN))
		return err_set(e, -EADDRINUSE, "somebody listens on '%s' already", path);
	if (unlink(path) < 0)
		return err_set(e, -errno, "remove the stale '%s': %m", path);
	return 0;
}

int http_server_listen_unix(struct http_server *s, const char *path, mode_t mode, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	osb_cleanup(fd_closep) int fd = -1;
	int r;

	if (strlen(path) >= sizeof(a.sun_path))
		return err_set(e, -ENAMETOOLONG, "the path of the socket is longer than %zu bytes",
			       sizeof(a.sun_path) - 1);
	memcpy(a.sun_path, path, strlen(path) + 1);
	r = clear_stale(path, &a, e);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set(e, -errno, "socket: %m");
	/* fchmod of the unbound socket decides the file's mode: there is no moment with another
	 * one. */
	if (fchmod(fd, mode) < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    chmod(path, mode) < 0 || listen(fd, BACKLOG) < 0)
		return err_set(e, -errno, "listen on '%s': %m", path);
	return http_server_listen_fd(s, take_fd(fd), e);
}

/* ---- the server ---- */

static void drain_over(void *arg)
{
	struct http_server *s = arg;

	list_each_safe (it, tmp, &s->conns)
		http_conn_close(list_entry(it, struct http_conn, link));
	tell_drained(s);
}

int http_server_new(struct loop *l, const struct http_limits *limits, http_handler_fn *handler,
		    void *app, struct http_server **ret, struct err *e)
{
	struct http_server *s = mem_new(struct http_server);

	(void)e;
	s->loop = l;
	s->limits = limits ? *limits : http_limits_default;
	s->handler = handler;
	s->app = app;
	list_init(&s->listeners);
	list_init(&s->conns);
	list_init(&s->kicked);
	s->spare_fd = open("/", O_PATH | O_CLOEXEC);
	s->timer = loop_timer_new(l, deadline_passed, s);
	s->drain_timer = loop_timer_new(l, drain_over, s);
	s->kick = loop_task_new(l, run_kicked, s);
	*ret = s;
	return 0;
}

char *http_server_scratch(struct http_server *s, size_t *ret_size)
{
	if (!s->scratch)
		s->scratch = mem_alloc(SCRATCH_BYTES);
	*ret_size = SCRATCH_BYTES;
	return s->scratch;
}

uint16_t http_server_port(const struct http_server *s)
{
	return s->port;
}

size_t http_server_connections(const struct http_server *s)
{
	return s->conns_n;
}

static void stop_listening(struct http_server *s)
{
	list_each_safe (it, tmp, &s->listeners) {
		struct http_listener *l = list_entry(it, struct http_listener, link);

		loop_fd_free(l->watch);
		fd_close(l->fd);
		list_remove(&l->link);
		free(l);
	}
}

void http_server_drain(struct http_server *s, uint64_t grace_ms, void (*done)(void *arg), void *arg)
{
	stop_listening(s);
	s->draining = true;
	s->drained = done;
	s->drained_arg = arg;
	loop_timer_start(s->drain_timer, grace_ms);
	list_each_safe (it, tmp, &s->conns) {
		struct http_conn *c = list_entry(it, struct http_conn, link);

		c->close_after = true;
		if (c->phase == PHASE_HEAD && http_out_empty(c))
			http_conn_close(c);
	}
	if (s->conns_n == 0)
		loop_timer_start(s->drain_timer, 0);
}

void http_server_free(struct http_server *s)
{
	if (!s)
		return;
	stop_listening(s);
	s->drained = NULL;
	list_each_safe (it, tmp, &s->conns)
		http_conn_close(list_entry(it, struct http_conn, link));
	loop_timer_free(s->timer);
	loop_timer_free(s->drain_timer);
	loop_task_free(s->kick);
	http_exchange_drop_spares(s);
	fd_close(s->spare_fd);
	free(s->scratch);
	free(s);
}
