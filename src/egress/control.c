/*
 * egress/control.c - receives what the worker asks, and sends what waits as fast as it reads.
 */
#include "egress/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/egress_msg.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "egress/box.h"
#include "egress/egress.h"
#include "egress/vault_proxy.h"
#include "net/loop.h"
#include "sys/memfd.h"
#include "sys/seqpacket.h"

#define FDS_OF_ADD	  (1 + RUNTIME_NET_FDS)
#define REQUESTS_PER_TURN 16
#define WAITING_MAX	  1024 /* then no more requests are read; a greeting may be longer */
#define AUTHORITY_MAX	  16384

struct outgoing {
	struct list link;
	struct egress_msg m;
	int fd; /* its document, or -1 */
};

struct control {
	struct egress *egress;
	int supervisor_fd, fd; /* fd: the worker, or -1 */
	struct loop_fd *supervisor_watch, *watch;
	struct list waiting; /* struct outgoing */
	size_t waiting_n;
	uint64_t serial;
};

static void disconnect(struct control *c);

/* ---- out ---- */

static void drop(struct control *c, struct outgoing *o)
{
	list_remove(&o->link);
	c->waiting_n--;
	fd_close(o->fd);
	free(o);
}

static void flush(struct control *c)
{
	while (c->fd >= 0 && !list_empty(&c->waiting)) {
		struct outgoing *o = list_entry(c->waiting.next, struct outgoing, link);
		struct err e = ERR_NONE;
		int r = seqpacket_send(c->fd, egress_msg_view(&o->m), &o->fd, o->fd >= 0, &e);

		if (r == -EAGAIN)
			break;
		if (r < 0) {
			log_line(LOG_WARN, "the worker does not hear", LOG_S("err", e.msg));
			disconnect(c);
			return;
		}
		drop(c, o);
	}
	if (c->watch)
		loop_fd_want(c->watch, (c->waiting_n < WAITING_MAX ? LOOP_READ : 0u) |
					       (c->waiting_n ? LOOP_WRITE : 0u));
}

/* `fd` is taken. */
static void post(struct control *c, const struct egress_msg *m, int fd)
{
	struct outgoing *o = mem_new(struct outgoing);

	o->m = *m;
	o->fd = fd;
	list_push_back(&c->waiting, &o->link);
	c->waiting_n++;
	flush(c);
}

static void answer(struct control *c, const struct egress_msg *request, int code, const char *text)
{
	struct egress_msg m;

	egress_msg_init(&m, code < 0 ? EGRESS_FAILED : EGRESS_OK, request->serial, request->id);
	m.code = code;
	snprintf(m.text, sizeof(m.text), "%s", text);
	post(c, &m, -1);
}

static int make_document(const struct box *b, int *ret, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_SECRET(EGRESS_DOCUMENT_MAX);
	struct json_writer w;

	json_writer_init(&w, &text);
	box_write_document(b, &w);
	if (json_writer_end(&w) < 0)
		return err_set(e, -E2BIG, "policy and vault of one sandbox are too large");
	return memfd_of("egress-box", buf_view(&text), ret, e);
}

static int post_document(struct control *c, const struct box *b, uint64_t serial, struct err *e)
{
	struct egress_msg m;
	int fd, r = make_document(b, &fd, e);

	if (r < 0)
		return r;
	egress_msg_init(&m, EGRESS_CHANGED, serial, b->id);
	post(c, &m, fd);
	return 0;
}

void control_save(struct control *c, struct box *b)
{
	struct err e = ERR_NONE;
	int r = 0;

	b->change_serial = ++c->serial;
	if (c->fd < 0)
		r = err_set(&e, -ENOTCONN, "the server is starting");
	else
		r = post_document(c, b, b->change_serial, &e);
	if (r < 0)
		box_saved(b, &e);
}

/* ---- in ---- */

static bool same_socket(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

static int read_document(int fd, struct json **ret, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_SECRET(EGRESS_DOCUMENT_MAX);
	int r = memfd_read(fd, &text, e);

	if (r == 0)
		r = json_parse(buf_view(&text), 0, ret, e);
	return r < 0 ? err_ctx(e, "document") : 0;
}

/* A box whose sockets are the ones that we have goes on; another one takes its place. */
static int add(struct control *c, const char *id, int fds[], struct err *e)
{
	osb_cleanup(json_freep) struct json *document = NULL;
	struct box *old = map_get(c->egress->boxes, view_of(id)), *b;
	int *sockets = fds + 1, r;

	for (size_t i = 0; i < FDS_OF_ADD; i++)
		if (fds[i] < 0)
			return err_set(e, -EPROTO, "a sandbox without its sockets");
	r = read_document(fds[0], &document, e);
	if (r < 0)
		return r;
	if (old && same_socket(old->fds[RUNTIME_NET_SETS], sockets[RUNTIME_NET_SETS]))
		return box_update(old, document, e);
	/* Two cannot listen to one socket. */
	box_free(map_remove(c->egress->boxes, view_of(id)));
	r = box_new(c->egress, id, document, sockets, &b, e);
	for (size_t i = 0; i < RUNTIME_NET_FDS; i++)
		sockets[i] = -1;
	if (r == 0)
		map_put(c->egress->boxes, view_of(id), b);
	return r;
}

/* The certificate that the sandbox will trust: it is asked for before there is a sandbox. */
static int post_authority(struct control *c, const struct egress_msg *request, struct err *e)
{
	osb_cleanup(buf_done) struct buf pem = BUF_INIT(AUTHORITY_MAX);
	struct egress_msg m;
	int fd, r = vault_ca_certificate(c->egress->secret, request->id, &pem, e);

	if (r == 0)
		r = memfd_of("egress-authority", buf_view(&pem), &fd, e);
	if (r < 0)
		return r;
	egress_msg_init(&m, EGRESS_OK, request->serial, request->id);
	post(c, &m, fd);
	return 0;
}

static void saved(struct control *c, const struct egress_msg *m)
{
	struct box *b = map_get(c->egress->boxes, view_of(m->id));
	struct err e = ERR_NONE;

	if (!b || !b->change_serial || b->change_serial != m->serial)
		return;
	if (m->code < 0)
		(void)err_set(&e, m->code, "%s", m->text[0] ? m->text : "it was not recorded");
	box_saved(b, m->code < 0 ? &e : NULL);
}

static void handle(struct control *c, const struct egress_msg *m, int fds[])
{
	struct err e = ERR_NONE;
	int r = 0;

	switch (m->kind) {
	case EGRESS_ADD:
		r = add(c, m->id, fds, &e);
		break;
	case EGRESS_REMOVE:
		box_free(map_remove(c->egress->boxes, view_of(m->id)));
		break;
	case EGRESS_CA:
		r = post_authority(c, m, &e);
		if (r == 0)
			return;
		break;
	case EGRESS_SAVED:
		saved(c, m);
		return;
	default:
		r = err_set(&e, -EOPNOTSUPP, "message %u is not for us", m->kind);
		break;
	}
	if (r < 0)
		log_line(LOG_ERROR, "a request of the worker failed", LOG_I("kind", m->kind),
			 LOG_S("box", m->id), LOG_S("err", e.msg));
	answer(c, m, r, e.msg);
}

/* 1 = handled, 0 = nothing there, -errno = the connection is over. */
static int receive_one(struct control *c)
{
	char datagram[sizeof(struct egress_msg)];
	int fds[SEQPACKET_MAX_FDS];
	struct err e = ERR_NONE;
	struct egress_msg m;
	int n = seqpacket_receive(c->fd, datagram, sizeof(datagram), fds, &e);

	if (n == -EAGAIN)
		return 0;
	if (n == 0)
		return -EPIPE;
	if (n > 0 && egress_msg_parse(view_mem(datagram, (size_t)n), &m, &e) == 0)
		handle(c, &m, fds);
	else
		log_line(LOG_ERROR, "dropping the worker: malformed message", LOG_S("err", e.msg));
	for (size_t i = 0; i < SEQPACKET_MAX_FDS; i++)
		fd_close(fds[i]);
	return e.code < 0 ? e.code : 1;
}

static void worker_speaks(void *arg, int fd, unsigned events)
{
	struct control *c = arg;

	(void)fd;
	if (events & LOOP_WRITE)
		flush(c);
	for (int i = 0; i < REQUESTS_PER_TURN && c->fd >= 0 && events & LOOP_READ; i++) {
		int r = receive_one(c);

		if (r < 0)
			disconnect(c);
		if (r <= 0)
			return;
	}
}

/* ---- connections ---- */

/* What was not recorded does not count; the next worker hears what does. */
static void disconnect(struct control *c)
{
	struct err e = ERR_NONE;
	size_t pos = 0;
	void *b;

	if (c->fd < 0)
		return;
	loop_fd_free(take_ptr(c->watch));
	c->fd = fd_close(c->fd);
	list_each_safe (it, next, &c->waiting)
		drop(c, list_entry(it, struct outgoing, link));
	(void)err_set(&e, -ENOTCONN, "the server has ended before it was recorded");
	while (map_next(c->egress->boxes, &pos, &(struct view){0}, &b))
		if (((struct box *)b)->change_serial)
			box_saved(b, &e);
}

static void greet(struct control *c)
{
	struct err e = ERR_NONE;
	struct egress_msg m;
	size_t pos = 0;
	void *b;

	while (map_next(c->egress->boxes, &pos, &(struct view){0}, &b))
		if (post_document(c, b, ++c->serial, &e) < 0)
			log_line(LOG_ERROR, "cannot tell the worker of a sandbox",
				 LOG_S("box", ((struct box *)b)->id), LOG_S("err", e.msg));
	egress_msg_init(&m, EGRESS_HELLO, ++c->serial, NULL);
	post(c, &m, -1);
}

static void connect_worker(struct control *c, int fd)
{
	struct err e = ERR_NONE;

	disconnect(c);
	if (loop_fd_new(c->egress->loop, fd, worker_speaks, c, &c->watch, &e) < 0) {
		log_line(LOG_ERROR, "cannot watch the worker", LOG_S("err", e.msg));
		fd_close(fd);
		return;
	}
	c->fd = fd;
	loop_fd_want(c->watch, LOOP_READ);
	greet(c);
}

/* The supervisor sends one connection per datagram.  When it goes, so do we; the kernel holds. */
static void supervisor_speaks(void *arg, int fd, unsigned events)
{
	struct control *c = arg;
	int fds[SEQPACKET_MAX_FDS];
	struct err e = ERR_NONE;
	char text[16];
	int n = seqpacket_receive(fd, text, sizeof(text), fds, &e);

	(void)events;
	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		log_line(LOG_INFO, "the supervisor has gone, ending");
		loop_stop(c->egress->loop);
		return;
	}
	for (size_t i = 1; i < SEQPACKET_MAX_FDS; i++)
		fd_close(fds[i]);
	if (fds[0] >= 0)
		connect_worker(c, fds[0]);
}

int control_new(struct egress *g, int supervisor_fd, struct control **ret, struct err *e)
{
	struct control *c = mem_new(struct control);
	int r;

	c->egress = g;
	c->supervisor_fd = supervisor_fd;
	c->fd = -1;
	list_init(&c->waiting);
	r = loop_fd_new(g->loop, supervisor_fd, supervisor_speaks, c, &c->supervisor_watch, e);
	if (r < 0) {
		control_free(c);
		return r;
	}
	loop_fd_want(c->supervisor_watch, LOOP_READ);
	*ret = c;
	return 0;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	disconnect(c);
	loop_fd_free(c->supervisor_watch);
	fd_close(c->supervisor_fd);
	free(c);
}
