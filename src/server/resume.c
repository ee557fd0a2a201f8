/*
 * server/resume.c - see resume.h.
 *
 * Whenever an operation of the service has ended, all who wait look again: the sandbox may have
 * been paused only now, or be resumed by somebody else, or be gone.
 */
#include "server/resume.h"

#include <stdio.h>

#include "base/list.h"
#include "base/mem.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "server/sandboxes.h"

struct resumes {
	struct loop *loop;
	struct sandboxes *sandboxes;
	uint64_t wait_ms;
	struct list waiting;
	struct loop_task *look;
};

struct waiter {
	struct list link;
	struct loop_timer *timer;
	struct http_exchange *x;
	char id[40];
	char why[sizeof(
		((struct failure *)0)->message)]; /* it could not be resumed; empty: no such news */
	resume_fn *fn;
	void *arg;
};

static void waiter_free(struct waiter *w)
{
	list_remove(&w->link);
	loop_timer_free(w->timer);
	free(w);
}

static void end(struct waiter *w, const char *why)
{
	struct http_exchange *x = w->x;
	resume_fn *fn = w->fn;
	void *arg = w->arg;
	char copy[sizeof(w->why)];

	if (why)
		snprintf(copy, sizeof(copy), "%s", why);
	http_on_gone(x, NULL, NULL);
	waiter_free(w);
	fn(arg, x, why ? copy : NULL);
}

static void on_gone(struct http_exchange *x, void *arg)
{
	(void)x;
	waiter_free(arg);
}

static void on_time(void *arg)
{
	end(arg, "it takes too long");
}

/* Success shows in the sandbox's state. */
static void on_resumed(void *arg, struct sandbox *b, const struct failure *f)
{
	struct resumes *r = arg;

	if (!f || !b)
		return;
	list_each_safe (it, next, &r->waiting) {
		struct waiter *w = list_entry(it, struct waiter, link);

		if (strcmp(w->id, b->id) == 0 && !b->busy)
			snprintf(w->why, sizeof(w->why), "%s", f->message);
	}
	loop_task_post(r->look);
}

static void look(struct resumes *r, struct waiter *w)
{
	struct sandbox *b = sandboxes_find(r->sandboxes, view_of(w->id));

	if (!b || (b->state != SANDBOX_PAUSING && b->state != SANDBOX_PAUSED &&
		   b->state != SANDBOX_RESUMING))
		end(w, NULL);
	else if (w->why[0])
		end(w, w->why);
	else if (b->state == SANDBOX_PAUSED && !b->busy)
		sandboxes_resume(r->sandboxes, b, on_resumed, r);
}

/* What ends may let a request go on, and that begins others: only those who wait now are looked at.
 */
static void on_look(void *arg)
{
	struct resumes *r = arg;
	struct list now;

	list_init(&now);
	while (!list_empty(&r->waiting)) {
		struct list *it = r->waiting.next;

		list_remove(it);
		list_push_back(&now, it);
	}
	while (!list_empty(&now)) {
		struct list *it = now.next;

		list_remove(it);
		list_push_back(&r->waiting, it);
		look(r, list_entry(it, struct waiter, link));
	}
}

static void on_settled(void *arg)
{
	struct resumes *r = arg;

	if (!list_empty(&r->waiting))
		loop_task_post(r->look);
}

struct resumes *resumes_new(struct loop *l, struct sandboxes *s, uint64_t wait_ms)
{
	struct resumes *r = mem_new(struct resumes);

	r->loop = l;
	r->sandboxes = s;
	r->wait_ms = wait_ms;
	r->look = loop_task_new(l, on_look, r);
	list_init(&r->waiting);
	sandboxes_on_settled(s, on_settled, r);
	return r;
}

void resumes_free(struct resumes *r)
{
	if (!r)
		return;
	list_each_safe (it, next, &r->waiting)
		waiter_free(list_entry(it, struct waiter, link));
	loop_task_free(r->look);
	free(r);
}

void resumes_wait(struct resumes *r, const struct sandbox *b, struct http_exchange *x,
		  resume_fn *fn, void *arg)
{
	struct waiter *w = mem_new(struct waiter);

	snprintf(w->id, sizeof(w->id), "%s", b->id);
	w->x = x;
	w->fn = fn;
	w->arg = arg;
	w->timer = loop_timer_new(r->loop, on_time, w);
	loop_timer_start(w->timer, r->wait_ms);
	list_push_back(&r->waiting, &w->link);
	http_on_gone(x, on_gone, w);
	loop_task_post(r->look);
}
