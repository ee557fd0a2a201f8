/*
 * warden/serve.c - receives requests and hands each to its function.
 */
#include "warden/serve.h"

#include <errno.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "codec/warden_msg.h"
#include "net/loop.h"
#include "sys/seqpacket.h"
#include "warden/create.h"
#include "warden/reports.h"
#include "warden/requests.h"
#include "warden/warden.h"

/* Requests handled per turn, so that ends and memory kills are noticed under load too. */
#define REQUESTS_PER_TURN 16

void serve_disconnect(struct warden *w)
{
	loop_fd_free(take_ptr(w->control_watch));
	w->control_fd = fd_close(w->control_fd);
	create_forget(w);
	/* Whoever connects next says again what it knows. */
	list_each_safe (it, next, &w->boxes)
		list_entry(it, struct box, link)->claimed = false;
}

/* 1 = handled, 0 = nothing there, -errno = the connection is over. */
static int receive_one(struct warden *w)
{
	char datagram[sizeof(struct warden_msg)];
	int fds[SEQPACKET_MAX_FDS];
	struct err e = ERR_NONE;
	struct warden_msg m;
	int n;

	n = seqpacket_receive(w->control_fd, datagram, sizeof(datagram), fds, &e);
	if (n == -EAGAIN)
		return 0;
	if (n == 0)
		return -EPIPE;
	if (n > 0 && warden_msg_parse(view_mem(datagram, (size_t)n), &m, &e) == 0)
		requests_handle(w, &m, fds);
	else
		log_line(LOG_ERROR, "dropping the server: malformed message", LOG_S("err", e.msg));
	seqpacket_close(fds, 0);
	return e.code < 0 ? e.code : 1;
}

static void readable(void *arg, int fd, unsigned events)
{
	struct warden *w = arg;

	(void)fd;
	(void)events;
	for (int i = 0; i < REQUESTS_PER_TURN && w->control_fd >= 0; i++) {
		int r = receive_one(w);

		if (r < 0)
			serve_disconnect(w);
		if (r <= 0)
			return;
	}
}

static void connect_server(struct warden *w, int fd)
{
	struct err e = ERR_NONE;

	serve_disconnect(w);
	if (loop_fd_new(w->loop, fd, readable, w, &w->control_watch, &e) < 0) {
		log_line(LOG_ERROR, "cannot watch the server", LOG_S("err", e.msg));
		fd_close(fd);
		return;
	}
	w->control_fd = fd;
	loop_fd_want(w->control_watch, LOOP_READ);
	report_hello(w);
}

/* The supervisor sends one connection per datagram.  When it goes, so do we; sandboxes stay. */
static void supervisor_speaks(void *arg, int fd, unsigned events)
{
	struct warden *w = arg;
	int fds[SEQPACKET_MAX_FDS];
	struct err e = ERR_NONE;
	char text[16];
	int n;

	(void)events;
	n = seqpacket_receive(fd, text, sizeof(text), fds, &e);
	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		log_line(LOG_INFO, "the supervisor has gone, ending");
		loop_stop(w->loop);
		return;
	}
	if (fds[0] >= 0)
		connect_server(w, fds[0]);
	seqpacket_close(fds, 1);
}

int serve_start(struct warden *w, struct err *e)
{
	int r = loop_fd_new(w->loop, w->supervisor_fd, supervisor_speaks, w, &w->supervisor_watch,
			    e);

	if (r == 0)
		loop_fd_want(w->supervisor_watch, LOOP_READ);
	return r;
}

void serve_stop(struct warden *w)
{
	serve_disconnect(w);
	loop_fd_free(take_ptr(w->supervisor_watch));
	w->supervisor_fd = fd_close(w->supervisor_fd);
}
