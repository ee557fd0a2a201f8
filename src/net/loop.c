/*
 * net/loop.c - the event loop, on libuv.
 *
 * Changes of what an fd is watched for are collected and told to the kernel once per turn, and
 * only if they differ: a watcher that stops and wants READ again costs no system call.
 */
#include "net/loop.h"

#include <assert.h>
#include <poll.h>
#include <uv.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"

struct loop {
	uv_loop_t uv;
	uv_prepare_t before_poll; /* tells the kernel what changed */
	uv_check_t after_poll;	  /* runs posted tasks */
	uv_idle_t no_wait;	  /* runs while tasks are posted, so that polling does not block */
	struct list changed;	  /* of loop_fd */
	struct list posted;	  /* of loop_task */
	uint64_t now_us;	  /* 0 = not read in this turn */
};

struct loop_fd {
	uv_poll_t poll;
	struct loop *loop;
	loop_fd_fn *fn;
	void *arg;
	struct list changed;
	int fd;
	unsigned char want;  /* by the owner */
	unsigned char armed; /* known to the kernel; may be more than what is wanted */
	bool exact;	     /* the surplus woke us: arm nothing but what is wanted */
	bool no_hangup;	     /* urgent data stands in the way of telling a hangup */
};

struct loop_timer {
	uv_timer_t timer;
	loop_timer_fn *fn;
	void *arg;
};

struct loop_signal {
	uv_signal_t signal;
	loop_signal_fn *fn;
	void *arg;
};

struct loop_task {
	struct loop *loop;
	loop_task_fn *fn;
	void *arg;
	struct list posted;
};

/* ---- fds ---- */

static void free_fd(uv_handle_t *h)
{
	free(container_of((uv_poll_t *)h, struct loop_fd, poll));
}

static void mark_changed(struct loop_fd *w)
{
	if (!list_empty(&w->changed))
		return;
	/* Keeps the loop alive until the change is applied. */
	if (list_empty(&w->loop->changed))
		uv_ref((uv_handle_t *)&w->loop->before_poll);
	list_push_back(&w->loop->changed, &w->changed);
}

/* POLLPRI is asked for to hear of POLLHUP and POLLERR alone; urgent TCP data raises it too. */
static bool hung_up(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
	struct loop_fd *w = container_of(h, struct loop_fd, poll);
	unsigned got = 0;

	if (status < 0) {
		w->armed = 0; /* libuv has stopped it */
		mark_changed(w);
		got = LOOP_READ | LOOP_WRITE | LOOP_HANGUP;
	} else {
		got |= events & UV_READABLE ? LOOP_READ : 0u;
		got |= events & UV_WRITABLE ? LOOP_WRITE : 0u;
		got |= events & UV_PRIORITIZED ? LOOP_HANGUP : 0u;
		if (got & LOOP_HANGUP && !hung_up(w->fd)) {
			got &= ~(unsigned)LOOP_HANGUP;
			w->no_hangup = true;
			mark_changed(w);
		}
	}
	if (got & ~w->want) {
		w->exact = true;
		mark_changed(w);
	}
	got &= w->want;
	if (got)
		w->fn(w->arg, w->fd, got);
}

static bool surplus_is_harmless(const struct loop_fd *w, unsigned want)
{
	unsigned covered = w->armed ? w->armed | LOOP_HANGUP : 0u;

	return !w->exact && want && !(want & ~covered) && !(w->armed & ~want & LOOP_WRITE);
}

static void apply_want(struct loop_fd *w)
{
	unsigned want = w->want & ~(w->no_hangup ? LOOP_HANGUP : 0u);
	int events = 0;
	int r;

	if (want == w->armed || surplus_is_harmless(w, want))
		return;
	events |= want & LOOP_READ ? UV_READABLE : 0;
	events |= want & LOOP_WRITE ? UV_WRITABLE : 0;
	events |= want & LOOP_HANGUP ? UV_PRIORITIZED : 0;
	r = uv_poll_start(&w->poll, events, on_poll);
	assert(r == 0);
	(void)r;
	w->armed = (unsigned char)want;
	w->exact = false;
}

int loop_fd_new(struct loop *l, int fd, loop_fd_fn *fn, void *arg, struct loop_fd **ret,
		struct err *e)
{
	struct loop_fd *w = mem_new(struct loop_fd);
	int r = uv_poll_init(&l->uv, &w->poll, fd);

	if (r < 0) {
		free(w);
		return err_set(e, r, "watch fd %d: %s", fd, uv_strerror(r));
	}
	w->loop = l;
	w->fn = fn;
	w->arg = arg;
	w->fd = fd;
	list_init(&w->changed);
	*ret = w;
	return 0;
}

void loop_fd_want(struct loop_fd *w, unsigned events)
{
	if (w->want == events)
		return;
	w->want = (unsigned char)events;
	mark_changed(w);
}

static void unmark_changed(struct loop_fd *w)
{
	if (list_empty(&w->changed))
		return;
	list_remove(&w->changed);
	if (list_empty(&w->loop->changed))
		uv_unref((uv_handle_t *)&w->loop->before_poll);
}

void loop_fd_free(struct loop_fd *w)
{
	if (!w)
		return;
	w->want = 0;
	unmark_changed(w);
	uv_close((uv_handle_t *)&w->poll, free_fd);
}

/* ---- timers ---- */

static void free_timer(uv_handle_t *h)
{
	free(container_of((uv_timer_t *)h, struct loop_timer, timer));
}

static void on_timer(uv_timer_t *h)
{
	struct loop_timer *t = container_of(h, struct loop_timer, timer);

	t->fn(t->arg);
}

struct loop_timer *loop_timer_new(struct loop *l, loop_timer_fn *fn, void *arg)
{
	struct loop_timer *t = mem_new(struct loop_timer);

	(void)uv_timer_init(&l->uv, &t->timer); /* cannot fail */
	t->fn = fn;
	t->arg = arg;
	return t;
}

/* libuv counts from the time of the last turn: a callback that took long would shorten the wait. */
static void start_timer(struct loop_timer *t, uint64_t ms, uint64_t repeat_ms)
{
	uv_update_time(t->timer.loop);
	(void)uv_timer_start(&t->timer, on_timer, ms, repeat_ms); /* fails on closing timers only */
}

void loop_timer_start(struct loop_timer *t, uint64_t ms)
{
	start_timer(t, ms, 0);
}

void loop_timer_repeat(struct loop_timer *t, uint64_t ms)
{
	start_timer(t, ms, ms ? ms : 1);
}

void loop_timer_stop(struct loop_timer *t)
{
	(void)uv_timer_stop(&t->timer); /* cannot fail */
}

bool loop_timer_active(const struct loop_timer *t)
{
	return uv_is_active((const uv_handle_t *)&t->timer);
}

void loop_timer_free(struct loop_timer *t)
{
	if (t)
		uv_close((uv_handle_t *)&t->timer, free_timer);
}

/* ---- signals ---- */

static void free_signal(uv_handle_t *h)
{
	free(container_of((uv_signal_t *)h, struct loop_signal, signal));
}

static void on_signal(uv_signal_t *h, int signum)
{
	struct loop_signal *s = container_of(h, struct loop_signal, signal);

	s->fn(s->arg, signum);
}

int loop_signal_new(struct loop *l, int signum, loop_signal_fn *fn, void *arg,
		    struct loop_signal **ret, struct err *e)
{
	struct loop_signal *s = mem_new(struct loop_signal);
	int r = uv_signal_init(&l->uv, &s->signal);

	if (r < 0) {
		free(s);
		return err_set(e, r, "watch signal %d: %s", signum, uv_strerror(r));
	}
	s->fn = fn;
	s->arg = arg;
	r = uv_signal_start(&s->signal, on_signal, signum);
	if (r < 0) {
		uv_close((uv_handle_t *)&s->signal, free_signal);
		return err_set(e, r, "watch signal %d: %s", signum, uv_strerror(r));
	}
	*ret = s;
	return 0;
}

void loop_signal_free(struct loop_signal *s)
{
	if (s)
		uv_close((uv_handle_t *)&s->signal, free_signal);
}

/* ---- tasks ---- */

static void on_no_wait(uv_idle_t *h)
{
}

struct loop_task *loop_task_new(struct loop *l, loop_task_fn *fn, void *arg)
{
	struct loop_task *t = mem_new(struct loop_task);

	t->loop = l;
	t->fn = fn;
	t->arg = arg;
	list_init(&t->posted);
	return t;
}

void loop_task_post(struct loop_task *t)
{
	if (!list_empty(&t->posted))
		return;
	list_push_back(&t->loop->posted, &t->posted);
	(void)uv_idle_start(&t->loop->no_wait, on_no_wait); /* cannot fail; twice is once */
}

void loop_task_cancel(struct loop_task *t)
{
	list_remove(&t->posted);
}

void loop_task_free(struct loop_task *t)
{
	if (!t)
		return;
	loop_task_cancel(t);
	free(t);
}

/* Tasks that are posted by tasks run in the next turn: fds and timers get theirs in between. */
static void on_after_poll(uv_check_t *h)
{
	struct loop *l = container_of(h, struct loop, after_poll);
	struct list now;

	list_push_front(&l->posted, &now);
	list_remove(&l->posted); /* `now` heads the list instead */
	while (!list_empty(&now)) {
		struct loop_task *t = list_entry(now.next, struct loop_task, posted);

		list_remove(&t->posted);
		t->fn(t->arg);
	}
	if (list_empty(&l->posted))
		(void)uv_idle_stop(&l->no_wait); /* cannot fail */
}

/* ---- the loop ---- */

static void on_before_poll(uv_prepare_t *h)
{
	struct loop *l = container_of(h, struct loop, before_poll);

	l->now_us = 0;
	list_each_safe (it, tmp, &l->changed) {
		struct loop_fd *w = list_entry(it, struct loop_fd, changed);

		unmark_changed(w);
		apply_want(w);
	}
}

int loop_new(struct loop **ret, struct err *e)
{
	struct loop *l = mem_new(struct loop);
	int r = uv_loop_init(&l->uv);

	if (r < 0) {
		free(l);
		return err_set(e, r, "event loop: %s", uv_strerror(r));
	}
	list_init(&l->changed);
	list_init(&l->posted);
	/* None of these can fail.  Only their owner's work keeps the loop alive, not they. */
	(void)uv_prepare_init(&l->uv, &l->before_poll);
	(void)uv_check_init(&l->uv, &l->after_poll);
	(void)uv_idle_init(&l->uv, &l->no_wait);
	(void)uv_prepare_start(&l->before_poll, on_before_poll);
	(void)uv_check_start(&l->after_poll, on_after_poll);
	uv_unref((uv_handle_t *)&l->before_poll);
	uv_unref((uv_handle_t *)&l->after_poll);
	*ret = l;
	return 0;
}

void loop_run(struct loop *l)
{
	(void)uv_run(&l->uv,
		     UV_RUN_DEFAULT); /* whether handles are left is the caller's business */
}

void loop_stop(struct loop *l)
{
	uv_stop(&l->uv);
}

uint64_t loop_now_us(struct loop *l)
{
	if (!l->now_us)
		l->now_us = clock_mono_us();
	return l->now_us;
}

void loop_free(struct loop *l)
{
	int r = UV_EBUSY;

	if (!l)
		return;
	assert(list_empty(&l->changed) && list_empty(&l->posted));
	uv_close((uv_handle_t *)&l->before_poll, NULL);
	uv_close((uv_handle_t *)&l->after_poll, NULL);
	uv_close((uv_handle_t *)&l->no_wait, NULL);
	/* A signal on its way takes another turn to close. */
	for (int turns = 0; r == UV_EBUSY && turns < 100; turns++) {
		(void)uv_run(&l->uv, UV_RUN_NOWAIT);
		r = uv_loop_close(&l->uv);
	}
	assert(r == 0);
	free(l);
}
