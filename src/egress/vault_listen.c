/*
 * egress/vault_listen.c - connections that the kernel led here: whom do they ask for?
 *
 * What a client says first is looked at without taking it from the socket, so that whoever gets the
 * connection next finds it whole: TLS, HTTP, or the server itself.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/http1.h"
#include "codec/tls_hello.h"
#include "egress/box.h"
#include "egress/egress.h"
#include "egress/leases.h"
#include "egress/vault_int.h"
#include "net/connect.h"
#include "net/http_adopt.h"
#include "net/loop.h"
#include "net/relay.h"
#include "net/tls.h"
#include "net/tls_ca.h"
#include "policy/net_policy.h"
#include "sys/original_dst.h"

#define CONNS_MAX	 256 /* of one sandbox */
#define ACCEPTS_PER_TURN 32
#define PAUSE_MS	 100
#define WINDOW_MS	 100
#define DECRYPTS_MAX	 32    /* in it: a greeting costs a client nothing, and us a certificate */
#define SPEAK_MS	 10000 /* a client that says nothing is passed on, one that stops is not */
#define HTTP_PEEK_MAX	 16384
#define PEEK_MAX	 TLS_HELLO_MAX

/* ---- life ---- */

void vault_conn_free(struct vault_conn *c)
{
	bool served = c->serving_fd >= 0;

	list_remove(&c->link);
	if (c->proxy)
		c->proxy->conns_n--;
	c->proxy = NULL;
	loop_fd_free(take_ptr(c->watch));
	loop_timer_free(take_ptr(c->timer));
	connect_free(take_ptr(c->connect));
	tls_cancel(take_ptr(c->bridge));
	relay_free(take_ptr(c->relay));
	c->fd = fd_close(c->fd);
	/* The HTTP server still has it: it is cut, and freed when the server says so. */
	if (served)
		(void)shutdown(c->serving_fd, SHUT_RDWR);
	else
		free(c);
}

static void on_served(void *owner)
{
	struct vault_conn *c = owner;

	c->serving_fd = -1;
	if (c->proxy)
		vault_conn_free(c);
	else
		free(c);
}

/* ---- unbound: bytes pass as they are ---- */

static void on_relayed(void *arg)
{
	vault_conn_free(arg);
}

static void on_connected(void *arg, int fd, const struct err *e)
{
	struct vault_conn *c = arg;
	struct err failure = ERR_NONE;

	connect_free(take_ptr(c->connect));
	if (fd >= 0 && !vault_is_elsewhere(fd))
		fd = fd_close(fd);
	if (fd < 0 || relay_new(c->proxy->box->egress->loop, take_fd(c->fd), NULL, fd, NULL,
				/* idle_ms= */ 0, on_relayed, c, &c->relay, &failure) < 0)
		vault_conn_free(c);
	(void)e;
}

/* It says no name, but goes where one leads that must not be reached. */
static bool is_lost(const struct vault_conn *c)
{
	const char *name = leases_name(c->proxy->box, c->dst.v6, c->dst.bytes);

	return !c->name[0] && name && vault_hosts_have(&c->proxy->lost, view_of(name));
}

static void pass(struct vault_conn *c)
{
	const char *why = vault_refusal(c->proxy, &c->dst, c->name);
	struct err e = ERR_NONE;

	if (c->proxy->broken)
		why = "the vault cannot be read";
	else if (is_lost(c))
		why = VAULT_LOST;
	vault_note(c->proxy, &c->dst, c->name, c->https, why);
	if (why || vault_connect(c->proxy, &c->dst, on_connected, c, &c->connect, &e) < 0)
		vault_conn_free(c);
}

/* ---- bound: decrypted and served ---- */

static void serve(struct vault_conn *c, int fd)
{
	c->serving_fd = fd;
	http_server_adopt_for(c->proxy->box->egress->proxy, fd, c, on_served);
}

static void on_decrypted(void *arg, int fd, const struct err *e)
{
	struct vault_conn *c = arg;

	c->bridge = NULL;
	if (fd < 0) {
		/* Most often a client that does not trust the sandbox's authority. */
		log_line(LOG_DEBUG, "no TLS with the sandbox", LOG_S("box", c->proxy->box->id),
			 LOG_S("host", c->name), LOG_S("err", e->msg));
		vault_conn_free(c);
		return;
	}
	serve(c, fd);
}

/* OpenSSL has the name as it was sent. */
static void *find_certificate(void *arg, const char *server_name)
{
	struct vault_proxy *p = arg;
	struct err e = ERR_NONE;
	char name[256];
	size_t n = 0;
	void *ctx;

	for (const char *s = server_name; s && *s && n < sizeof(name) - 1; s++)
		name[n++] = (char)(*s >= 'A' && *s <= 'Z' ? *s + ('a' - 'A') : *s);
	if (n > 0 && name[n - 1] == '.')
		n--;
	name[n] = '\0';
	ctx = n ? tls_ca_context(p->ca, name, &e) : NULL;
	if (!ctx && n)
		log_line(LOG_WARN, "no certificate for a host", LOG_S("box", p->box->id),
			 LOG_S("host", name), LOG_S("err", e.msg));
	return ctx;
}

static int make_authority(struct vault_proxy *p, struct err *e)
{
	if (!p->ca && tls_ca_new(p->box->egress->secret, p->box->id, &p->ca, e) < 0)
		return e->code;
	if (!p->tls && tls_server_new_found(find_certificate, p, &p->tls, e) < 0)
		return e->code;
	return 0;
}

/* One sandbox must not keep us busy with greetings; others have questions. */
static bool must_wait(struct vault_proxy *p)
{
	uint64_t now = loop_now_us(p->box->egress->loop);

	if (now - p->window_us > WINDOW_MS * 1000) {
		p->window_us = now;
		p->window_n = 0;
	}
	return p->window_n++ >= DECRYPTS_MAX;
}

static void decrypt(struct vault_conn *c)
{
	struct vault_proxy *p = c->proxy;
	struct err e = ERR_NONE;

	c->waits = must_wait(p);
	if (c->waits) {
		loop_timer_start(c->timer, WINDOW_MS);
		return;
	}
	if (make_authority(p, &e) < 0) {
		log_line(LOG_ERROR, "the sandbox's authority cannot be made",
			 LOG_S("box", p->box->id), LOG_S("err", e.msg));
		vault_conn_free(c);
		return;
	}
	c->bridge = tls_accept(p->box->egress->bridges, p->tls, take_fd(c->fd), VIEW_NONE,
			       on_decrypted, c);
}

/* ---- whom does it ask for? ---- */

static bool is_bound(const struct vault_conn *c)
{
	struct view name = view_of(c->name);

	return name.len && (vault_binds_over(vault_of(c->proxy), name, c->https) ||
			    vault_hosts_have(&c->proxy->lost, name));
}

static void decide(struct vault_conn *c)
{
	loop_timer_stop(c->timer);
	loop_fd_free(take_ptr(c->watch));
	if (!is_bound(c))
		pass(c);
	else if (c->https)
		decrypt(c);
	else
		serve(c, take_fd(c->fd));
}

/* Without its port, in lower case; false if that is no name: an address says nothing that the
 * connection did not. */
static bool read_host(struct view host, char ret[256])
{
	struct net_prefix p;

	host = view_first(host, view_find(host, ':'));
	if (view_ends(host, VIEW(".")))
		host = view_first(host, host.len - 1);
	if (host.len == 0 || host.len > 253 || host.p[0] == '[' || net_prefix_parse(host, &p))
		return false;
	for (size_t i = 0; i < host.len; i++) {
		char ch = host.p[i];

		ret[i] = (char)(ch >= 'A' && ch <= 'Z' ? ch + ('a' - 'A') : ch);
	}
	ret[host.len] = '\0';
	return true;
}

/* 1 = known, or there is none; 0 = more must come. */
static int look_at_http(struct vault_conn *c, struct view said)
{
	struct http1_head head;
	struct err e = ERR_NONE;
	size_t scanned = 0;
	struct view host;
	ssize_t n;

	n = http1_head_end(said, &scanned);
	if (n == 0 && said.len < HTTP_PEEK_MAX)
		return 0;
	if (n > 0 && http1_parse_request(view_first(said, (size_t)n), &head, &e) == 0 &&
	    http1_header(&head, "Host", &host) && !read_host(host, c->name))
		c->name[0] = '\0';
	return 1;
}

static int look_at_tls(struct vault_conn *c, struct view said)
{
	struct tls_hello hello;
	int r = tls_hello_parse(said, &hello);

	if (r == 1)
		memcpy(c->name, hello.name, sizeof(c->name));
	return r == 0 ? 0 : 1;
}

/* Wakes when there is more than `n` bytes: what is known already need not be looked at again. */
static void want_more_than(struct vault_conn *c, size_t n)
{
	int mark = (int)n + 1;

	(void)setsockopt(c->fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark));
	loop_fd_want(c->watch, LOOP_READ);
}

static void on_said(void *arg, int fd, unsigned events)
{
	static char said[PEEK_MAX];
	struct vault_conn *c = arg;
	ssize_t n = recv(fd, said, sizeof(said), MSG_PEEK | MSG_DONTWAIT);
	int known;

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		vault_conn_free(c);
		return;
	}
	c->https = tls_hello_begins((unsigned char)said[0]);
	known = c->https ? look_at_tls(c, view_mem(said, (size_t)n))
			 : look_at_http(c, view_mem(said, (size_t)n));
	if (!known && (size_t)n > c->peeked) {
		c->peeked = (size_t)n;
		want_more_than(c, c->peeked);
		return;
	}
	if (!known) { /* woken, and nothing new: it says no more */
		vault_conn_free(c);
		return;
	}
	want_more_than(c, 0);
	decide(c);
}

static void on_silence(void *arg)
{
	struct vault_conn *c = arg;
	char byte;

	if (c->waits) {
		decrypt(c);
		return;
	}
	/* Servers of some protocols speak first.  Whoever stopped in the middle is not one of
	 * their clients. */
	if (recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
		vault_conn_free(c);
		return;
	}
	want_more_than(c, 0);
	decide(c);
}

/* ---- accepting ---- */

static bool read_dst(int fd, struct vault_dst *ret)
{
	struct sockaddr_storage a;
	struct err e = ERR_NONE;

	*ret = (struct vault_dst){0};
	if (original_dst(fd, &a, &e) < 0)
		return false;
	ret->v6 = a.ss_family == AF_INET6;
	if (ret->v6) {
		memcpy(ret->bytes, &((struct sockaddr_in6 *)&a)->sin6_addr, 16);
		ret->port = ntohs(((struct sockaddr_in6 *)&a)->sin6_port);
	} else {
		memcpy(ret->bytes, &((struct sockaddr_in *)&a)->sin_addr, 4);
		ret->port = ntohs(((struct sockaddr_in *)&a)->sin_port);
	}
	/* What was not led here came to our own port: there is nowhere to go on to. */
	return (ret->port == 80 || ret->port == 443) &&
	       inet_ntop(a.ss_family, ret->bytes, ret->ip, sizeof(ret->ip));
}

static void take_connection(struct vault_proxy *p, int fd)
{
	struct vault_conn *c;
	struct vault_dst dst;
	struct err e = ERR_NONE;

	if (p->conns_n >= CONNS_MAX || !read_dst(fd, &dst)) {
		fd_close(fd);
		return;
	}
	c = mem_new(struct vault_conn);
	c->proxy = p;
	c->fd = fd;
	c->serving_fd = -1;
	c->dst = dst;
	c->timer = loop_timer_new(p->box->egress->loop, on_silence, c);
	list_push_back(&p->conns, &c->link);
	p->conns_n++;
	if (loop_fd_new(p->box->egress->loop, fd, on_said, c, &c->watch, &e) < 0) {
		vault_conn_free(c);
		return;
	}
	loop_timer_start(c->timer, SPEAK_MS);
	loop_fd_want(c->watch, LOOP_READ);
}

static void on_pause_over(void *arg)
{
	struct vault_proxy *p = arg;

	loop_fd_want(p->listener, LOOP_READ);
}

static void on_connection(void *arg, int fd, unsigned events)
{
	struct vault_proxy *p = arg;

	(void)events;
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (conn < 0 && errno == ECONNABORTED)
			continue;
		if (conn < 0 && (errno == EMFILE || errno == ENFILE)) {
			/* Others must close some first; asking again at once helps nobody. */
			loop_fd_want(p->listener, 0);
			loop_timer_start(p->pause, PAUSE_MS);
		}
		if (conn < 0)
			return;
		take_connection(p, conn);
	}
}

int vault_listen(struct vault_proxy *p, struct err *e)
{
	int fd = p->box->fds[RUNTIME_NET_HTTP];

	if (fd < 0)
		return 0;
	if (loop_fd_new(p->box->egress->loop, fd, on_connection, p, &p->listener, e) < 0)
		return e->code;
	p->pause = loop_timer_new(p->box->egress->loop, on_pause_over, p);
	loop_fd_want(p->listener, LOOP_READ);
	return 0;
}
