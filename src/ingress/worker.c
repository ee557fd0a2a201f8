/*
 * ingress/worker.c - gives its rights up, then serves until it is told to end.
 */
#include "ingress/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "ingress/confine.h"
#include "ingress/finder.h"
#include "ingress/gate.h"
#include "ingress/intents.h"
#include "ingress/options.h"
#include "ingress/upstreams.h"
#include "net/http_proxy.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/tls.h"
#include "net/tls_files.h"
#include "net/tls_front.h"
#include "sys/seqpacket.h"

#define GRACE_MS	10000
#define FLUSH_MS	500
#define CONNECTIONS_MAX 65536
#define FDS_EACH	6 /* both ends, and pairs behind TLS at either */
#define FD_RESERVE	256
#define TLS_SURPLUS	64

struct worker {
	const struct worker_means *means;
	struct gate gate;
	struct http_server *http;
	struct tls_server *tls;
	struct tls_front *front;
	struct loop_signal *term, *interrupt;
	struct loop_fd *keeper_watch;
	int listen_fd, tls_fd, keeper_fd;
	bool stopping;
};

/* ---- ending ---- */

static void flushed(void *arg)
{
	loop_stop(((struct worker *)arg)->gate.loop);
}

static void drained(void *arg)
{
	struct worker *w = arg;

	if (w->front)
		tls_front_drain(w->front, FLUSH_MS, flushed, w);
	else
		flushed(w);
}

/* The first signal lets requests end, the second does not. */
static void on_signal(void *arg, int signum)
{
	struct worker *w = arg;

	if (w->stopping || !w->http) {
		loop_stop(w->gate.loop);
		return;
	}
	w->stopping = true;
	log_line(LOG_INFO, "stopping: running requests may end");
	http_server_drain(w->http, GRACE_MS, drained, w);
}

/* ---- the keeper ---- */

static void keeper_speaks(void *arg, int fd, unsigned events)
{
	struct worker *w = arg;
	int fds[SEQPACKET_MAX_FDS], n;
	struct err e = ERR_NONE;
	char text[16];

	n = seqpacket_receive(fd, text, sizeof(text), fds, &e);
	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		log_line(LOG_WARN, "the keeper of the certificate has gone, ending");
		loop_stop(w->gate.loop);
		return;
	}
	if (fds[0] >= 0 && tls_files_use(fds[0], &w->tls, &e) == 0)
		log_line(LOG_INFO, "new connections get the new certificate");
	else
		log_line(LOG_WARN, "a new certificate was not taken, keeping the old one",
			 LOG_S("err", e.msg));
	seqpacket_close(fds, 0);
}

/* ---- beginning ---- */

static int open_loop(struct worker *w, struct err *e)
{
	int r = loop_new(&w->gate.loop, e);

	if (r == 0)
		r = loop_signal_new(w->gate.loop, SIGTERM, on_signal, w, &w->term, e);
	if (r == 0)
		r = loop_signal_new(w->gate.loop, SIGINT, on_signal, w, &w->interrupt, e);
	return r;
}

static int give_up_rights(struct worker *w, struct err *e)
{
	return confine(w->means->options->user, e);
}

static struct http_limits limits(void)
{
	struct http_limits l = http_limits_default;
	struct rlimit files;

	l.connections = CONNECTIONS_MAX;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > 2 * FD_RESERVE)
		l.connections = (unsigned)MIN((uint64_t)CONNECTIONS_MAX,
					      ((uint64_t)files.rlim_cur - FD_RESERVE) / FDS_EACH);
	return l;
}

static int open_front(struct worker *w, size_t max, struct err *e)
{
	int r = tls_files_use(w->tls_fd, &w->tls, e);

	w->tls_fd = fd_close(w->tls_fd); /* a key is in no file of ours */
	if (r < 0)
		return r;
	w->front = tls_front_new(w->gate.loop, w->http, w->tls, max);
	r = loop_fd_new(w->gate.loop, w->keeper_fd, keeper_speaks, w, &w->keeper_watch, e);
	if (r == 0)
		loop_fd_want(w->keeper_watch, LOOP_READ);
	return r;
}

static int open_gate(struct worker *w, struct err *e)
{
	const struct options *o = w->means->options;
	struct intents_to to = {
		.redis = &o->redis,
		.ip = w->means->redis_ip,
		.queue_key = o->queue_key,
		.queue_max_len = o->queue_max_len,
		.min_interval_s = o->min_interval_s,
	};
	struct gate *g = &w->gate;

	upstreams_begin(g->upstreams, g->loop);
	g->finder = finder_new(g->loop, g->upstreams, o->api_key);
	g->proxies = http_proxies_new();
	if (to.ip)
		g->intents = intents_new(g->loop, &to);
	return 0;
}

static int serve(struct worker *w, struct err *e)
{
	struct http_limits l = limits();
	int r = http_server_new(w->gate.loop, &l, gate_handle, &w->gate, &w->http, e);

	if (r == 0 && w->tls_fd >= 0)
		r = open_front(w, l.connections + TLS_SURPLUS, e);
	if (r == 0)
		r = http_server_listen_fd(w->http, take_fd(w->listen_fd), e);
	return r;
}

static const struct {
	const char *name;
	int (*run)(struct worker *w, struct err *e);
} steps[] = {
	{"event loop", open_loop},
	{"give up rights", give_up_rights},
	{"open the gate", open_gate},
	{"serve", serve},
};

static void finish(struct worker *w)
{
	struct gate *g = &w->gate;

	http_server_free(w->http);
	tls_front_free(w->front);
	tls_server_free(w->tls);
	http_proxies_free(g->proxies);
	finder_free(g->finder);
	intents_free(g->intents);
	upstreams_free(g->upstreams);
	loop_fd_free(w->keeper_watch);
	loop_signal_free(w->term);
	loop_signal_free(w->interrupt);
	loop_free(g->loop);
	fd_close(w->listen_fd);
	fd_close(w->tls_fd);
	fd_close(w->keeper_fd);
}

int worker_run(const struct worker_means *means)
{
	struct worker w = {
		.means = means,
		.gate = {.options = means->options, .upstreams = means->upstreams},
		.listen_fd = means->listen_fd,
		.tls_fd = means->tls_fd,
		.keeper_fd = means->keeper_fd,
	};
	struct err e = ERR_NONE;

	(void)signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		if (steps[i].run(&w, &e) < 0) {
			err_ctx(&e, "%s", steps[i].name);
			log_line(LOG_ERROR, "cannot start", LOG_S("err", e.msg));
			finish(&w);
			return EXIT_FAILURE;
		}
	}
	log_line(LOG_INFO, "serving", LOG_S("host", means->options->host),
		 LOG_S("mode", preview_mode_name(means->options->mode)),
		 LOG_S("scheme", w.front ? "https" : "http"));
	loop_run(w.gate.loop);
	finish(&w);
	return EXIT_SUCCESS;
}
