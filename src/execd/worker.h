/*
 * execd/worker.h - long synchronous work in a forked copy of the daemon.
 */
#pragma once

#include "base/macro.h"

struct app;
struct err;
struct worker;

/* In the child: 0 or -errno with a sentence.  `out_fd` is a pipe to the daemon. */
typedef int worker_fn(void *arg, int out_fd, struct err *e);

/*
 * In the daemon, once: `e` is the child's failure (code 0 = none).  The worker is freed after it.
 */
typedef void worker_done_fn(void *arg, const struct err *e);

/*
 * Forks; the child keeps `keep_fd` (-1 = none) and runs fn(arg).  *ret_fd is the reading end of its
 * pipe (owned by the caller), or `ret_fd` is NULL.  done(done_arg) comes when the child has ended.
 */
osb_must_check int worker_start(struct app *app, worker_fn *fn, void *arg, int keep_fd, int *ret_fd,
				worker_done_fn *done, void *done_arg, struct worker **ret,
				struct err *e);

/* Kills the child; no callback comes.  Accepts NULL. */
void worker_stop(struct worker *w);

/* Nobody waits for it: it goes on, and no callback comes.  Accepts NULL. */
void worker_detach(struct worker *w);
