/*
 * execd/worker.c - a fork that works, tells how it went over a pipe, and ends.
 */
#include "execd/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "execd/app.h"
#include "execd/process.h"
#include "sys/namespace.h"

struct worker {
	struct process *process;
	int result_fd; /* gets a struct err */
	worker_done_fn *done;
	void *arg;
};

static void worker_free(struct worker *w)
{
	process_free(w->process);
	fd_close(w->result_fd);
	free(w);
}

static void on_ended(void *arg, int status)
{
	struct worker *w = arg;
	struct err e;

	if (read(w->result_fd, &e, sizeof(e)) != (ssize_t)sizeof(e))
		err_set(&e, -EIO, "the worker was killed");
	e.msg[sizeof(e.msg) - 1] = '\0';
	if (w->done)
		w->done(w->arg, &e);
	worker_free(w);
}

static osb_noreturn void work(worker_fn *fn, void *arg, int out_fd, int result_fd, int keep_fd)
{
	int keep[] = {out_fd, result_fd, keep_fd};
	struct err e = ERR_NONE;
	int r;

	namespace_close_fds(keep, ARRAY_LEN(keep));
	r = fn(arg, out_fd, &e);
	if (r == 0)
		e = ERR_NONE;
	else if (e.code == 0)
		err_set(&e, r, "failed");
	_exit(write(result_fd, &e, sizeof(e)) < 0);
}

int worker_start(struct app *app, worker_fn *fn, void *arg, int keep_fd, int *ret_fd,
		 worker_done_fn *done, void *done_arg, struct worker **ret, struct err *e)
{
	int out[2] = {-1, -1}, result[2] = {-1, -1};
	struct worker *w;
	pid_t pid = -1;
	int pidfd = -1, r;

	if ((ret_fd && pipe2(out, O_CLOEXEC) < 0) || pipe2(result, O_CLOEXEC) < 0) {
		r = err_set(e, -errno, "pipe: %m");
		fd_close(out[0]);
		fd_close(out[1]);
		return r;
	}
	r = namespace_fork(0, &pid, &pidfd, e);
	if (r == 0 && pid == 0)
		work(fn, arg, out[1], result[1], keep_fd);
	fd_close(out[1]);
	fd_close(result[1]);
	w = mem_new(struct worker);
	w->result_fd = result[0];
	w->done = done;
	w->arg = done_arg;
	if (r == 0)
		r = process_adopt(app, pid, pidfd, on_ended, w, &w->process, e);
	if (r < 0) {
		fd_close(out[0]);
		worker_free(w);
		return r;
	}
	if (ret_fd)
		*ret_fd = out[0];
	*ret = w;
	return 0;
}

void worker_stop(struct worker *w)
{
	if (!w)
		return;
	process_signal(w->process, SIGKILL, /* group= */ false);
	worker_free(w);
}

void worker_detach(struct worker *w)
{
	if (w)
		w->done = NULL;
}
