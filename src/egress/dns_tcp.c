/*
 * egress/dns_tcp.c - few connections, short ones, that nobody can keep open by doing nothing.
 */
#include "egress/dns_tcp.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "codec/dns.h"
#include "net/loop.h"
#include "net/sendq.h"

#define CLIENTS_MAX  64
#define OWED_MAX     64	  /* answers to one client */
#define QUESTION_MAX 4096 /* bytes of a message */
#define QUEUE_MAX    (256u << 10)
#define IDLE_US	     10000000
#define IDLE_TICK_MS 5000

struct dns_tcp {
	struct loop *loop;
	const struct dns_tcp_events *events;
	void *arg;
	int fd;
	struct loop_fd *watch;
	struct list clients; /* the one that was quiet for longest first */
	unsigned clients_n;
	bool paused;
	struct loop_timer *idle;
	struct loop_task *tidy;
};

struct dns_tcp_client {
	struct dns_tcp *tcp;
	struct list link;
	int fd;
	struct loop_fd *watch;
	struct buf in;
	struct sendq out;
	unsigned owed;
	bool ended; /* it sends no more */
	bool broken;
	uint64_t moved_us;
};

/* ---- clients ---- */

static void free_client(struct dns_tcp_client *c)
{
	c->tcp->clients_n--;
	list_remove(&c->link);
	loop_fd_free(c->watch);
	fd_close(c->fd);
	buf_done(&c->in);
	sendq_done(&c->out);
	free(c);
}

static void end_client(struct dns_tcp_client *c)
{
	struct dns_tcp *t = c->tcp;

	t->events->gone(t->arg, c);
	free_client(c);
	if (t->clients_n == 0)
		loop_timer_stop(t->idle);
}

static bool is_over(const struct dns_tcp_client *c)
{
	return c->broken || (c->ended && c->owed == 0 && sendq_len(&c->out) == 0);
}

static void moved(struct dns_tcp_client *c)
{
	c->moved_us = loop_now_us(c->tcp->loop);
	list_remove(&c->link);
	list_push_back(&c->tcp->clients, &c->link);
}

static void settle(struct dns_tcp_client *c)
{
	bool reads = !c->tcp->paused && !c->ended && c->owed < OWED_MAX && sendq_len(&c->out) == 0;

	if (is_over(c)) {
		loop_fd_want(c->watch, 0);
		loop_task_post(c->tcp->tidy);
		return;
	}
	loop_fd_want(c->watch, (reads ? LOOP_READ : 0u) | (sendq_len(&c->out) ? LOOP_WRITE : 0u));
}

void dns_tcp_answer(struct dns_tcp_client *c, struct view message)
{
	char length[2] = {(char)(message.len >> 8), (char)message.len};
	struct iovec iov[2] = {{length, 2}, {(char *)message.p, message.len}};

	c->owed--;
	if (!c->broken && message.len > 0 && sendq_write(&c->out, c->fd, iov, 2) < 0)
		c->broken = true;
	moved(c);
	settle(c);
	/* What came with an earlier question may be asked now. */
	if (c->in.len > 0)
		loop_task_post(c->tcp->tidy);
}

/* Whole messages, as long as it has something to ask. */
static void take_messages(struct dns_tcp_client *c)
{
	while (!c->broken && c->owed < OWED_MAX && c->in.len >= 2) {
		struct view got = buf_view(&c->in);
		size_t len = (size_t)(uint8_t)got.p[0] << 8 | (uint8_t)got.p[1];

		if (len < DNS_HEADER || len > QUESTION_MAX) {
			c->broken = true;
			return;
		}
		if (got.len - 2 < len)
			return;
		c->owed++;
		c->tcp->events->message(c->tcp->arg, c, view_mem(got.p + 2, len));
		buf_consume(&c->in, 2 + len);
	}
}

static void read_client(struct dns_tcp_client *c)
{
	char *room = buf_reserve(&c->in, c->in.max - c->in.len);
	ssize_t n;

	if (!room) {
		c->broken = true;
		return;
	}
	n = recv(c->fd, room, c->in.max - c->in.len, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0)
		c->broken = true;
	else if (n == 0)
		c->ended = true;
	else
		buf_commit(&c->in, (size_t)n);
}

static void on_client(void *arg, int fd, unsigned events)
{
	struct dns_tcp_client *c = arg;

	moved(c);
	if (events & LOOP_WRITE) {
		ssize_t n = sendq_flush(&c->out, fd);

		if (n < 0 && n != -EAGAIN)
			c->broken = true;
	}
	/* A full buffer has a whole message in it: there is always room. */
	if ((events & LOOP_READ) && !c->broken && c->in.len < c->in.max)
		read_client(c);
	take_messages(c);
	settle(c);
}

/* ---- the listener ---- */

static void tidy(void *arg)
{
	struct dns_tcp *t = arg;

	list_each_safe (it, next, &t->clients) {
		struct dns_tcp_client *c = list_entry(it, struct dns_tcp_client, link);

		if (!is_over(c)) {
			take_messages(c);
			settle(c);
		}
		if (is_over(c))
			end_client(c);
	}
}

static void end_idle(void *arg)
{
	struct dns_tcp *t = arg;
	uint64_t now = loop_now_us(t->loop);

	list_each_safe (it, next, &t->clients) {
		struct dns_tcp_client *c = list_entry(it, struct dns_tcp_client, link);

		/* Who waits for us is not idle, unless it does not take what it has got. */
		if (c->moved_us + IDLE_US < now && (c->owed == 0 || sendq_len(&c->out) > 0))
			end_client(c);
	}
	if (!t->paused)
		loop_fd_want(t->watch, LOOP_READ);
}

static void add_client(struct dns_tcp *t, int fd)
{
	struct dns_tcp_client *c = mem_new(struct dns_tcp_client);
	struct err e = ERR_NONE;

	if (t->clients_n == CLIENTS_MAX)
		end_client(list_entry(t->clients.next, struct dns_tcp_client, link));
	c->tcp = t;
	c->fd = fd;
	c->in = BUF_INIT(2 + QUESTION_MAX);
	sendq_init(&c->out, QUEUE_MAX);
	list_push_back(&t->clients, &c->link);
	if (t->clients_n++ == 0)
		loop_timer_repeat(t->idle, IDLE_TICK_MS);
	if (loop_fd_new(t->loop, fd, on_client, c, &c->watch, &e) < 0) {
		end_client(c);
		return;
	}
	moved(c);
	settle(c);
}

static void on_listener(void *arg, int fd, unsigned events)
{
	struct dns_tcp *t = arg;

	(void)events;
	for (unsigned i = 0; i < CLIENTS_MAX; i++) {
		int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (client < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
			/* No descriptors, for instance: not again before the next tick. */
			loop_fd_want(t->watch, 0);
			loop_timer_repeat(t->idle, IDLE_TICK_MS);
		}
		if (client < 0)
			return;
		add_client(t, client);
	}
}

void dns_tcp_pause(struct dns_tcp *t, bool paused)
{
	t->paused = paused;
	loop_fd_want(t->watch, paused ? 0u : LOOP_READ);
	list_each_safe (it, next, &t->clients)
		settle(list_entry(it, struct dns_tcp_client, link));
}

int dns_tcp_new(struct loop *l, int fd, const struct dns_tcp_events *events, void *arg,
		struct dns_tcp **ret, struct err *e)
{
	struct dns_tcp *t = mem_new(struct dns_tcp);
	int r;

	t->loop = l;
	t->fd = fd;
	t->events = events;
	t->arg = arg;
	list_init(&t->clients);
	t->idle = loop_timer_new(l, end_idle, t);
	t->tidy = loop_task_new(l, tidy, t);
	r = loop_fd_new(l, fd, on_listener, t, &t->watch, e);
	if (r < 0) {
		dns_tcp_free(t);
		return r;
	}
	loop_fd_want(t->watch, LOOP_READ);
	*ret = t;
	return 0;
}

void dns_tcp_free(struct dns_tcp *t)
{
	if (!t)
		return;
	list_each_safe (it, next, &t->clients)
		free_client(list_entry(it, struct dns_tcp_client, link));
	loop_fd_free(t->watch);
	loop_timer_free(t->idle);
	loop_task_free(t->tidy);
	free(t);
}
