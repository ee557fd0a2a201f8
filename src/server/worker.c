/*
 * server/worker.c - drops privileges, then serves until it is told to end.
 *
 * Order is the security argument: nothing that a client or a sandbox wrote is looked at before the
 * process has become an ordinary user in an empty root.
 */
#include "server/worker.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "codec/json.h"
#include "net/http_proxy.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "runtime/runtime.h"
#include "server/app.h"
#include "server/config.h"
#include "server/egress_client.h"
#include "server/https.h"
#include "server/image_keeper.h"
#include "server/image_out.h"
#include "server/images.h"
#include "server/jobs.h"
#include "server/layers.h"
#include "server/policing.h"
#include "server/pulls.h"
#include "server/resume.h"
#include "server/routes.h"
#include "server/sandboxes.h"
#include "server/server_filter.h"
#include "server/snapshots.h"
#include "server/state_dir.h"
#include "server/tunnels.h"
#include "server/uploads.h"
#include "server/volumes.h"
#include "store/store.h"
#include "sys/protect.h"
#include "sys/seqpacket.h"

#define GRACE_MAX_MS	7000  /* so that the whole server ends within ten seconds */
#define CONNECTIONS_MAX 65536 /* where the configuration sets no limit */
#define FD_RESERVE	256   /* of open files: not for connections */
#define TLS_FDS		3     /* of a client: its own, and a pair behind it */
#define TLS_SURPLUS	64    /* beyond the limit: still told why */
#define FLUSH_MS	500   /* for what was said in the end to leave through TLS */
#define WARDEN_MS	3000 /* for a warden that comes up; then clients learn that there is none */

struct worker {
	struct app app;
	const struct worker_means *means;
	struct loop_signal *term, *interrupt;
	struct loop_fd *supervisor_watch;
	struct loop_timer *patience;
	struct https *https; /* or NULL: clients speak in the clear */
	int supervisor_fd, listen_fd, tls_fd;
	bool stopping;
	char missing[sizeof(((struct runtime *)0)->missing)]; /* what was said of this host */
};

/* ---- ending ---- */

static void flushed(void *arg)
{
	loop_stop(((struct worker *)arg)->app.loop);
}

static void drained(void *arg)
{
	struct worker *w = arg;

	if (w->https)
		https_drain(w->https, FLUSH_MS, flushed, w);
	else
		flushed(w);
}

/* The first signal lets requests end, the second does not. */
static void on_signal(void *arg, int signum)
{
	struct worker *w = arg;
	uint64_t grace_ms = (uint64_t)w->app.config->timeout_graceful_shutdown * 1000;

	(void)signum;
	if (w->stopping || !w->app.http) {
		loop_stop(w->app.loop);
		return;
	}
	w->stopping = true;
	log_line(LOG_INFO, "stopping: running requests may end");
	http_server_drain(w->app.http, MIN(grace_ms, (uint64_t)GRACE_MAX_MS), drained, w);
}

/* ---- the supervisor ---- */

static void supervisor_speaks(void *arg, int fd, unsigned events)
{
	struct worker *w = arg;
	int fds[SEQPACKET_MAX_FDS], n;
	struct err e = ERR_NONE;
	char text[16];

	(void)events;
	n = seqpacket_receive(fd, text, sizeof(text), fds, &e);
	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		log_line(LOG_WARN, "the supervisor has gone, ending");
		loop_stop(w->app.loop);
		return;
	}
	seqpacket_close(fds, 1);
	if (w->https && view_is(view_mem(text, (size_t)n), "tls")) {
		https_renew(w->https, fds[0]);
		fd_close(fds[0]);
	} else if (fds[0] >= 0 && view_is(view_mem(text, (size_t)n), "egress")) {
		egress_client_attach(w->app.egress, fds[0]);
	} else if (fds[0] >= 0) {
		runtime_native_attach(w->app.runtime, fds[0]);
	}
}

/* Clients that come earlier wait in the kernel. */
static void begin_to_listen(void *arg)
{
	struct worker *w = arg;
	struct err e = ERR_NONE;

	loop_timer_stop(w->patience);
	if (w->listen_fd < 0 || w->stopping)
		return;
	if (http_server_listen_fd(w->app.http, take_fd(w->listen_fd), &e) < 0) {
		log_line(LOG_ERROR, "cannot listen, ending", LOG_S("err", e.msg));
		loop_stop(w->app.loop);
		return;
	}
	log_line(LOG_INFO, "serving", LOG_S("host", w->app.config->host),
		 LOG_I("port", w->app.config->port));
}

static void runtime_ready(void *arg)
{
	struct worker *w = arg;

	if (strcmp(w->missing, w->app.runtime->missing) != 0) {
		memcpy(w->missing, w->app.runtime->missing, sizeof(w->missing));
		if (w->missing[0])
			log_line(LOG_WARN, "this host does not give every guarantee",
				 LOG_S("missing", w->missing));
	}
	sandboxes_events.ready(w->app.sandboxes);
	begin_to_listen(w);
}

static void runtime_exited(void *arg, const char *id, int status, bool oom)
{
	sandboxes_events.exited(((struct worker *)arg)->app.sandboxes, id, status, oom);
}

static void runtime_oom(void *arg, const char *id)
{
	sandboxes_events.oom(((struct worker *)arg)->app.sandboxes, id);
}

static const struct runtime_events events = {
	.ready = runtime_ready,
	.exited = runtime_exited,
	.oom = runtime_oom,
};

/* ---- beginning ---- */

static void handle(struct http_exchange *x, void *app)
{
	if (log_enabled(LOG_DEBUG))
		log_line(LOG_DEBUG, "request", LOG_V("method", http_head(x)->method),
			 LOG_V("path", http_path(x)), LOG_V("peer", http_peer(x)));
	routes_handle(x, app);
}

static int open_loop(struct worker *w, struct err *e)
{
	int r = loop_new(&w->app.loop, e);

	if (r == 0)
		r = loop_signal_new(w->app.loop, SIGTERM, on_signal, w, &w->term, e);
	if (r == 0)
		r = loop_signal_new(w->app.loop, SIGINT, on_signal, w, &w->interrupt, e);
	return r;
}

static int drop_privileges(struct worker *w, struct err *e)
{
	struct rlimit before;
	int r;

	protect_raise_nofile(&before);
	r = privileges_drop(&w->means->privileges, w->app.config->state_dir, e);
	/* Sockets of sandboxes are reached by short relative paths. */
	if (r == 0 && chdir("/" STATE_DIR_BOXES) < 0)
		r = err_set(e, -errno, "enter %s: %m", STATE_DIR_BOXES);
	return r;
}

static int open_snapshots(struct app *app, struct err *e)
{
	struct snapshots_means means = {
		.store = app->store,
		.jobs = app->jobs,
		.images = app->images,
		.layers = app->layers,
		.sandboxes = app->sandboxes,
	};

	return snapshots_new(&means, &app->snapshots, e);
}

static int open_service(struct worker *w, struct err *e)
{
	struct app *app = &w->app;
	int r = store_open("/" STATE_DIR_DATABASE, &app->store, e);

	app->started_us = (int64_t)(clock_wall_ns() / 1000);
	uploads_sweep();
	app->jobs = jobs_new(app->loop, w->supervisor_fd);
	if (r == 0)
		r = layers_new(app->loop, app->store, app->jobs, &app->layers, e);
	if (r == 0)
		r = volumes_new(app->store, app->jobs, &app->volumes, e);
	if (r == 0)
		r = images_new(app->loop, app->store, app->layers, &app->images, e);
	if (r == 0) {
		app->image_outs = image_outs_new(app->config, app->jobs, app->layers);
		app->image_keeper = image_keeper_new(app);
	}
	if (r == 0)
		r = pulls_new(app->loop, app->config, app->store, app->jobs, app->images,
			      &app->pulls, e);
	if (r == 0)
		r = sandboxes_new(app->loop, app->config, app->store, app->images, app->pulls,
				  &app->sandboxes, e);
	if (r == 0) {
		sandboxes_set_volumes(app->sandboxes, app->volumes);
		r = open_snapshots(app, e);
	}
	if (r == 0)
		r = runtime_native_new(app->loop, &events, w, &app->runtime, e);
	if (r == 0) {
		sandboxes_set_runtime(app->sandboxes, app->runtime);
		app->egress = egress_client_new(app->loop, &policing_events, app->sandboxes);
		egress_client_set_runtime(app->egress, app->runtime);
		policing_set_egress(app->sandboxes, app->egress);
	}
	if (r == 0)
		layers_set_runtime(app->layers, app->runtime);
	if (r == 0)
		image_keeper_begin(app->image_keeper);
	return r;
}

static int filter_calls(struct worker *w, struct err *e)
{
	(void)w;
	return server_filter_apply(e);
}

static struct http_limits limits_of(const struct config *c, bool tls)
{
	struct http_limits limits = http_limits_default;
	struct rlimit files;
	uint64_t n = c->limit_concurrency > 0 ? (uint64_t)c->limit_concurrency : CONNECTIONS_MAX;

	/* A proxied connection takes two descriptors; the listener survives a shortage anyway. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > 2 * FD_RESERVE)
		n = MIN(n, ((uint64_t)files.rlim_cur - FD_RESERVE) / (tls ? TLS_FDS : 1));
	limits.connections = (unsigned)n;
	limits.idle_ms = (uint64_t)c->timeout_keep_alive * 1000;
	return limits;
}

static int serve(struct worker *w, struct err *e)
{
	bool tls = w->tls_fd >= 0;
	struct http_limits limits = limits_of(w->app.config, tls);
	struct app *app = &w->app;
	int r;

	app->proxies = http_proxies_new();
	app->tunnels = tunnels_new(app->loop);
	app->resumes = resumes_new(app->loop, app->sandboxes,
				   (uint64_t)app->config->ingress_resume_wait_seconds * 1000);
	r = http_server_new(app->loop, &limits, handle, app, &app->http, e);
	if (r == 0 && tls)
		r = https_new(app->loop, app->http, w->tls_fd, limits.connections + TLS_SURPLUS,
			      &w->https, e);
	w->tls_fd = fd_close(w->tls_fd); /* a key is in no file of ours */
	if (r == 0)
		r = loop_fd_new(app->loop, w->supervisor_fd, supervisor_speaks, w,
				&w->supervisor_watch, e);
	if (r < 0)
		return r;
	loop_fd_want(w->supervisor_watch, LOOP_READ);
	w->patience = loop_timer_new(app->loop, begin_to_listen, w);
	loop_timer_start(w->patience, WARDEN_MS);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct worker *w, struct err *e);
} steps[] = {
	{"event loop", open_loop},
	{"drop privileges", drop_privileges},
	{"open the state", open_service},
	{"filter system calls", filter_calls},
	{"serve", serve},
};

static void finish(struct worker *w)
{
	struct app *app = &w->app;

	http_server_free(app->http);
	https_free(w->https);
	http_proxies_free(app->proxies);
	tunnels_free(app->tunnels);
	if (app->runtime) {
		snapshots_stop(app->snapshots);
		app->runtime->ops->free(app->runtime);
		policing_set_egress(app->sandboxes, NULL);
		egress_client_free(app->egress);
	}
	image_keeper_free(app->image_keeper);
	image_outs_free(app->image_outs);
	pulls_free(app->pulls);
	snapshots_free(app->snapshots);
	sandboxes_free(app->sandboxes);
	resumes_free(app->resumes);
	volumes_free(app->volumes);
	images_free(app->images);
	layers_free(app->layers);
	jobs_free(app->jobs);
	store_close(app->store);
	loop_fd_free(w->supervisor_watch);
	loop_timer_free(w->patience);
	loop_signal_free(w->term);
	loop_signal_free(w->interrupt);
	loop_free(app->loop);
	fd_close(w->supervisor_fd);
	fd_close(w->listen_fd);
	fd_close(w->tls_fd);
}

int worker_run(const struct worker_means *means)
{
	struct worker w = {
		.app = {.config = means->config},
		.means = means,
		.supervisor_fd = means->supervisor_fd,
		.listen_fd = means->listen_fd,
		.tls_fd = means->tls_fd,
	};
	struct err e = ERR_NONE;

	(void)prctl(PR_SET_NAME, "osb-worker", 0, 0, 0);
	json_wipe_freed(); /* documents of vaults come through here */
	(void)signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		if (steps[i].run(&w, &e) < 0) {
			err_ctx(&e, "%s", steps[i].name);
			log_line(LOG_ERROR, "the worker cannot start", LOG_S("err", e.msg));
			finish(&w);
			return 1;
		}
	}
	loop_run(w.app.loop);
	finish(&w);
	return 0;
}
