/*
 * net/loop.h - the event loop and what can wake it: fds, timers, signals, deferred calls.
 *
 * Everything runs on one thread.  Objects are opaque and owned by whoever created them; `_free`
 * may be called at any time, also from the object's own callback, and no callback comes
 * after it.  An idle loop makes no wake-ups.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"

struct err;
struct loop;
struct loop_fd;
struct loop_timer;
struct loop_signal;
struct loop_task;

osb_must_check int loop_new(struct loop **ret, struct err *e);
void loop_run(struct loop *l); /* until loop_stop(), or until nothing is left to wait for */
void loop_stop(struct loop *l);
void loop_free(struct loop *l); /* accepts NULL; everything made on it must have been freed */

/* Monotonic microseconds, read once per turn. */
uint64_t loop_now_us(struct loop *l);

/*
 * HANGUP: the peer has gone for good, both ways, or the socket has failed; a peer that only
 * stopped sending (a half-close) is no hangup.  It is told apart only while READ is not wanted:
 * else it shows as READ, and reading tells.
 */
enum loop_events { LOOP_READ = 1, LOOP_WRITE = 2, LOOP_HANGUP = 4 };

/* `events`: which of the wanted ones the fd is ready for.  Level-triggered.  Errors show as
 * everything that is wanted: the next call tells. */
typedef void loop_fd_fn(void *arg, int fd, unsigned events);

/* Watches `fd` (borrowed, must stay open until freed, one watcher at a time) for nothing at first.
 * The fd becomes non-blocking.  Not for regular files: -EPERM. */
osb_must_check int loop_fd_new(struct loop *l, int fd, loop_fd_fn *fn, void *arg,
			       struct loop_fd **ret, struct err *e);
void loop_fd_want(struct loop_fd *w, unsigned events); /* 0 = nothing */
void loop_fd_free(struct loop_fd *w);		       /* accepts NULL; before the fd is closed */

typedef void loop_timer_fn(void *arg);

struct loop_timer *loop_timer_new(struct loop *l, loop_timer_fn *fn, void *arg);
void loop_timer_start(struct loop_timer *t, uint64_t ms); /* once; restarts a running one */
void loop_timer_repeat(struct loop_timer *t, uint64_t ms);
void loop_timer_stop(struct loop_timer *t);
bool loop_timer_active(const struct loop_timer *t);
void loop_timer_free(struct loop_timer *t); /* accepts NULL */

typedef void loop_signal_fn(void *arg, int signum);

osb_must_check int loop_signal_new(struct loop *l, int signum, loop_signal_fn *fn, void *arg,
				   struct loop_signal **ret, struct err *e);
void loop_signal_free(struct loop_signal *s); /* accepts NULL */

/* Calls fn(arg) once per post, later in this turn or the next, with an empty stack.  Posting twice
 * is once. */
typedef void loop_task_fn(void *arg);

struct loop_task *loop_task_new(struct loop *l, loop_task_fn *fn, void *arg);
void loop_task_post(struct loop_task *t);
void loop_task_cancel(struct loop_task *t);
void loop_task_free(struct loop_task *t); /* accepts NULL */
