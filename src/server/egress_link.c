/*
 * server/egress_link.c - a queue before the socket, for the moments when egress is behind.
 */
#include "server/egress_link.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/loop.h"
#include "sys/memfd.h"
#include "sys/seqpacket.h"

#define MESSAGES_PER_TURN 64

struct outgoing {
	struct list link;
	struct egress_msg msg;
	int fds[EGRESS_LINK_FDS];
};

struct egress_link {
	struct loop *loop;
	const struct egress_link_events *events;
	void *arg;
	int fd; /* -1 = there is no connection */
	struct loop_fd *watch;
	struct list queue;
};

static void outgoing_free(struct outgoing *o)
{
	list_remove(&o->link);
	for (size_t i = 0; i < EGRESS_LINK_FDS; i++)
		fd_close(o->fds[i]);
	free(o);
}

static void detach(struct egress_link *k)
{
	loop_fd_free(take_ptr(k->watch));
	k->fd = fd_close(k->fd);
	list_each_safe (it, next, &k->queue)
		outgoing_free(list_entry(it, struct outgoing, link));
}

static void lose(struct egress_link *k)
{
	if (k->fd < 0)
		return;
	detach(k);
	k->events->lost(k->arg);
}

static size_t fds_n(const struct outgoing *o)
{
	size_t n = 0;

	while (n < EGRESS_LINK_FDS && o->fds[n] >= 0)
		n++;
	return n;
}

/* A connection that has broken is noticed by reading. */
static void pump(struct egress_link *k)
{
	bool full = false;

	list_each_safe (it, next, &k->queue) {
		struct outgoing *o = list_entry(it, struct outgoing, link);
		struct err e = ERR_NONE;
		int r = seqpacket_send(k->fd, egress_msg_view(&o->msg), o->fds, fds_n(o), &e);

		if (r == -EAGAIN) {
			full = true;
			break;
		}
		outgoing_free(o);
	}
	loop_fd_want(k->watch, LOOP_READ | (full ? LOOP_WRITE : 0));
}

/* 1 = one message was taken, 0 = none there, -errno = the connection is over. */
static int receive_one(struct egress_link *k)
{
	char datagram[sizeof(struct egress_msg)];
	int fds[SEQPACKET_MAX_FDS], len;
	struct err e = ERR_NONE;
	struct egress_msg m;

	len = seqpacket_receive(k->fd, datagram, sizeof(datagram), fds, &e);
	if (len == -EAGAIN)
		return 0;
	if (len <= 0)
		return -EPIPE;
	for (size_t i = 1; i < ARRAY_LEN(fds); i++)
		fd_close(fds[i]);
	if (egress_msg_parse(view_mem(datagram, (size_t)len), &m, &e) < 0) {
		log_line(LOG_ERROR, "egress says something that is not understood",
			 LOG_S("err", e.msg));
		fd_close(fds[0]);
		return -EPROTO;
	}
	k->events->message(k->arg, &m, fds[0]);
	return 1;
}

static void ready(void *arg, int fd, unsigned events)
{
	struct egress_link *k = arg;

	(void)events;
	for (int i = 0; i < MESSAGES_PER_TURN && k->fd == fd; i++) {
		int r = receive_one(k);

		if (r == 0)
			break;
		if (r < 0) {
			lose(k);
			return;
		}
	}
	if (k->fd >= 0)
		pump(k);
}

void egress_link_attach(struct egress_link *k, int fd)
{
	struct err e = ERR_NONE;

	lose(k);
	if (loop_fd_new(k->loop, fd, ready, k, &k->watch, &e) < 0) {
		log_line(LOG_ERROR, "cannot listen to egress", LOG_S("err", e.msg));
		fd_close(fd);
		return;
	}
	k->fd = fd;
	loop_fd_want(k->watch, LOOP_READ);
}

void egress_link_send(struct egress_link *k, const struct egress_msg *m,
		      const int fds[EGRESS_LINK_FDS])
{
	struct outgoing *o = mem_new(struct outgoing);

	o->msg = *m;
	memcpy(o->fds, fds, sizeof(o->fds));
	list_push_back(&k->queue, &o->link);
	if (k->fd < 0)
		outgoing_free(o);
	else
		pump(k);
}

int egress_link_read(int document, struct buf *ret, struct err *e)
{
	int r;

	if (document < 0)
		return err_set(e, -EPROTO, "a document is missing");
	r = memfd_read(document, ret, e);
	fd_close(document);
	return r;
}

struct egress_link *egress_link_new(struct loop *l, const struct egress_link_events *events,
				    void *arg)
{
	struct egress_link *k = mem_new(struct egress_link);

	k->loop = l;
	k->events = events;
	k->arg = arg;
	k->fd = -1;
	list_init(&k->queue);
	return k;
}

void egress_link_free(struct egress_link *k)
{
	if (!k)
		return;
	detach(k);
	free(k);
}
