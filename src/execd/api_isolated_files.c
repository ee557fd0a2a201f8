/*
 * execd/api_isolated_files.c - the files of an isolated session: as it sees them, what it changed,
 * and those changes applied.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "execd/api_isolated.h"
#include "execd/app.h"
#include "execd/errors.h"
#include "execd/file_root.h"
#include "execd/files.h"
#include "execd/isolated.h"
#include "execd/isolated_box.h"
#include "execd/isolated_upper.h"
#include "execd/routes.h"
#include "execd/worker.h"
#include "net/http_server.h"
#include "net/loop.h"

#define CHUNK 65536

/* The part of "/v1/isolated/session/ID/files/info" that the plain routes have: "/files/info". */
static struct view plain_path(struct http_exchange *x)
{
	struct view path = http_path(x);

	for (int i = 0; i < 4; i++) {
		path = view_skip(path, 1);
		path = view_skip(path, view_find(path, '/'));
	}
	return path;
}

static void session_files(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct isolated_session *s = api_isolated_session(app, x);
	struct file_root root;
	const struct file_api *api;

	if (!s)
		return;
	api = file_api_find(http_head(x)->method, plain_path(x));
	if (!api) {
		http_reply_error(x, 404, CODE_UNKNOWN, "no such file route");
		return;
	}
	root = (struct file_root){.fd = isolated_box_root(s->box),
				  .cwd = (char *)s->spec.workspace};
	if (root.fd < 0)
		http_reply_error(x, 503, CODE_UNAVAILABLE, "session process has exited");
	else
		api->handle(app, x, &root);
}

/* The session of a diff or commit, or NULL when it has no overlay (and that was answered). */
static struct isolated_session *overlay_session(struct app *app, struct http_exchange *x)
{
	struct isolated_session *s = api_isolated_session(app, x);
	struct err e = ERR_NONE;

	if (s && isolated_box_upper(s->box) < 0) {
		err_set(&e, -EINVAL,
			"only sessions with workspace mode 'overlay' have a difference");
		reply_bad_request(x, CODE_INVALID_REQUEST, &e);
		return NULL;
	}
	return s;
}

/* ---- diff ---- */

struct diff {
	struct http_exchange *x;
	struct worker *worker; /* NULL once it has ended */
	int fd;		       /* its pipe; -1 at the end */
	struct loop_fd *watch;
	bool begun;
	struct err e;
};

static void diff_free(struct diff *d)
{
	worker_stop(d->worker);
	loop_fd_free(d->watch);
	fd_close(d->fd);
	free(d);
}

static void diff_begin(struct diff *d)
{
	if (d->begun)
		return;
	d->begun = true;
	http_reply_header(d->x, "Content-Type", VIEW("application/gzip"));
	http_reply_header(d->x, "Content-Disposition",
			  VIEW("attachment; filename=\"diff.tar.gz\""));
	http_reply_begin(d->x, 200, /* length= */ -1);
}

/* Both the pipe and the worker have come to their end. */
static void diff_finish(struct diff *d)
{
	struct http_exchange *x = d->x;
	struct err e = d->e;
	bool begun = d->begun;

	if (d->fd >= 0 || d->worker)
		return;
	diff_free(d);
	if (!e.code)
		http_reply_end(x);
	else if (begun)
		http_reply_cut(x);
	else
		reply_runtime_error(x, &e);
}

static void on_diff_done(void *arg, const struct err *e)
{
	struct diff *d = arg;

	d->worker = NULL;
	d->e = *e;
	diff_finish(d);
}

static void on_diff_pipe(void *arg, int fd, unsigned events)
{
	struct diff *d = arg;
	char chunk[CHUNK];
	ssize_t n = read(fd, chunk, sizeof(chunk));

	if (n > 0) {
		diff_begin(d);
		if (!http_reply_write(d->x, view_mem(chunk, (size_t)n)))
			loop_fd_want(d->watch, 0);
		return;
	}
	loop_fd_free(d->watch);
	d->watch = NULL;
	d->fd = fd_close(d->fd);
	diff_finish(d);
}

static void on_diff_drained(struct http_exchange *x, void *arg)
{
	struct diff *d = arg;

	if (d->watch)
		loop_fd_want(d->watch, LOOP_READ);
}

static void on_diff_gone(struct http_exchange *x, void *arg)
{
	diff_free(arg);
}

struct upper_work {
	int upper_fd;
	const char *workspace;
};

static int work_archive(void *arg, int out_fd, struct err *e)
{
	const struct upper_work *w = arg;

	return isolated_upper_archive(w->upper_fd, out_fd, e);
}

static void session_diff(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct isolated_session *s = overlay_session(app, x);
	struct upper_work work;
	struct err e = ERR_NONE;
	struct diff *d;

	if (!s)
		return;
	work.upper_fd = isolated_box_upper(s->box);
	d = mem_new(struct diff);
	d->x = x;
	d->fd = -1;
	if (worker_start(app, work_archive, &work, work.upper_fd, &d->fd, on_diff_done, d,
			 &d->worker, &e) < 0 ||
	    loop_fd_new(app->loop, d->fd, on_diff_pipe, d, &d->watch, &e) < 0) {
		diff_free(d);
		reply_runtime_error(x, &e);
		return;
	}
	loop_fd_want(d->watch, LOOP_READ);
	http_on_gone(x, on_diff_gone, d);
	http_on_drained(x, on_diff_drained, d);
}

/* ---- commit ---- */

struct commit {
	struct app *app;
	struct http_exchange *x; /* NULL when the client has left: the work goes on */
	char id[RAND_UUID_LEN + 1];
};

static void on_commit_done(void *arg, const struct err *e)
{
	struct commit *c = arg;
	struct isolated_session *s = isolated_find(c->app->isolated, view_of(c->id));

	if (s) {
		s->committing = false;
		isolated_end(s);
	}
	if (c->x && e->code)
		reply_runtime_error(c->x, e);
	else if (c->x)
		reply_empty(c->x);
	free(c);
}

static void on_commit_gone(struct http_exchange *x, void *arg)
{
	struct commit *c = arg;

	c->x = NULL;
}

static int work_commit(void *arg, int out_fd, struct err *e)
{
	const struct upper_work *w = arg;

	return isolated_upper_commit(w->upper_fd, w->workspace, e);
}

static void session_commit(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct isolated_session *s = overlay_session(app, x);
	struct upper_work work;
	struct err e = ERR_NONE;
	struct worker *worker;
	struct commit *c;

	if (!s)
		return;
	if (s->active > 0) {
		http_reply_error(x, 409, CODE_RUNTIME,
				 "the session is busy; commit when no run is active");
		return;
	}
	work = (struct upper_work){isolated_box_upper(s->box), s->spec.workspace};
	c = mem_new(struct commit);
	c->app = app;
	c->x = x;
	memcpy(c->id, s->id, sizeof(c->id));
	if (worker_start(app, work_commit, &work, work.upper_fd, NULL, on_commit_done, c, &worker,
			 &e) < 0) {
		free(c);
		reply_runtime_error(x, &e);
		return;
	}
	s->committing = true;
	isolated_begin(s);
	http_on_gone(x, on_commit_gone, c);
}

const struct route api_isolated_files_routes[] = {
	{"GET", "/v1/isolated/session/{sessionId}/diff", session_diff, 0},
	{"POST", "/v1/isolated/session/{sessionId}/commit", session_commit, 0},
	{"GET", "/v1/isolated/session/{sessionId}/files/info", session_files, 0},
	{"DELETE", "/v1/isolated/session/{sessionId}/files", session_files, 0},
	{"POST", "/v1/isolated/session/{sessionId}/files/mv", session_files, 0},
	{"POST", "/v1/isolated/session/{sessionId}/files/permissions", session_files, 0},
	{"GET", "/v1/isolated/session/{sessionId}/files/search", session_files, 0},
	{"POST", "/v1/isolated/session/{sessionId}/files/replace", session_files, 0},
	{"POST", "/v1/isolated/session/{sessionId}/files/upload", session_files, 0},
	{"GET", "/v1/isolated/session/{sessionId}/files/download", session_files, 0},
	{"GET", "/v1/isolated/session/{sessionId}/directories/list", session_files, 0},
	{"POST", "/v1/isolated/session/{sessionId}/directories", session_files, 0},
	{"DELETE", "/v1/isolated/session/{sessionId}/directories", session_files, 0},
	{0},
};
