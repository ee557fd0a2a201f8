/*
 * server/freeze.c - sandboxes that stand still for a snapshot.
 *
 * Their state stays Running: nobody but the snapshot should notice.  What is asked of them
 * meanwhile is put off until they move again, in the order in which it was asked.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "server/sandboxes_int.h"
#include "store/store.h"

struct freeze {
	struct list link; /* under way */
	struct sandboxes *service;
	char id[40];
	sandboxes_fn *fn;
	void *arg;
};

/* An operation that was put off. */
struct waiter {
	struct list link;
	sandboxes_operation *what;
	sandboxes_fn *fn;
	void *arg;
};

bool sandboxes_put_off(struct sandbox *b, sandboxes_operation *what, sandboxes_fn *fn, void *arg)
{
	struct waiter *w;

	if (!b->captured)
		return false;
	w = mem_new(struct waiter);
	w->what = what;
	w->fn = fn;
	w->arg = arg;
	list_push_back(&b->waiting, &w->link);
	return true;
}

void sandboxes_forget_waiting(struct sandbox *b)
{
	list_each_safe (it, next, &b->waiting) {
		list_remove(it);
		free(list_entry(it, struct waiter, link));
	}
}

/* Each may put itself off again, behind one that has begun. */
static void go_on(struct sandboxes *s, struct sandbox *b)
{
	struct list now;

	list_init(&now);
	while (!list_empty(&b->waiting)) {
		struct list *first = b->waiting.next;

		list_remove(first);
		list_push_back(&now, first);
	}
	while (!list_empty(&now)) {
		struct waiter *w = list_entry(now.next, struct waiter, link);

		list_remove(&w->link);
		w->what(s, b, w->fn, w->arg);
		free(w);
	}
}

static struct freeze *freeze_new(struct sandboxes *s, const char *id, sandboxes_fn *fn, void *arg)
{
	struct freeze *z = mem_new(struct freeze);

	z->service = s;
	list_push_back(&s->freezes, &z->link);
	snprintf(z->id, sizeof(z->id), "%s", id);
	z->fn = fn;
	z->arg = arg;
	return z;
}

static void release(struct sandboxes *s, struct sandbox *b)
{
	if (!b)
		return;
	b->busy = b->captured = false;
	go_on(s, b);
}

/* Whoever asked hears of it before those who wait. */
static void answer(struct freeze *z, const struct err *e, bool moves)
{
	struct sandbox *b = map_get(z->service->by_id, view_of(z->id));
	struct failure f = FAILURE_NONE;

	if (e)
		failure_set(&f, 500, "SNAPSHOT::FREEZE_FAILED", "%s", e->msg);
	z->fn(z->arg, b, e ? &f : NULL);
	if (moves)
		release(z->service, b);
	list_remove(&z->link);
	free(z);
}

static void frozen(void *arg, const struct err *e)
{
	answer(arg, e, e != NULL);
}

static void thawed(void *arg, const struct err *e)
{
	answer(arg, e, true);
}

void sandboxes_reserve(struct sandboxes *s, struct sandbox *b, sandboxes_fn *fn, void *arg)
{
	struct failure f = FAILURE_NONE;

	if (sandboxes_put_off(b, sandboxes_reserve, fn, arg))
		return;
	if (b->busy || b->state != SANDBOX_RUNNING) {
		failure_set(&f, 409, "SNAPSHOT::INVALID_SOURCE_STATE",
			    "sandbox '%s' is %s, or busy with another operation", b->id,
			    sandbox_state_name(b->state));
		fn(arg, b, &f);
		return;
	}
	b->busy = b->captured = true;
	fn(arg, b, NULL);
}

void sandboxes_unreserve(struct sandboxes *s, const char *id)
{
	release(s, map_get(s->by_id, view_of(id)));
}

void sandboxes_freeze(struct sandboxes *s, const char *id, sandboxes_fn *fn, void *arg)
{
	s->runtime->ops->pause(s->runtime, id, frozen, freeze_new(s, id, fn, arg));
}

void sandboxes_thaw(struct sandboxes *s, const char *id, sandboxes_fn *fn, void *arg)
{
	s->runtime->ops->resume(s->runtime, id, thawed, freeze_new(s, id, fn, arg));
}

static void nobody_hears(void *arg, const struct err *e)
{
	(void)arg;
	(void)e;
}

void sandboxes_thaw_at_end(struct sandboxes *s, const char *id)
{
	s->runtime->ops->resume(s->runtime, id, nobody_hears, NULL);
}

void sandboxes_forget_freezes(struct sandboxes *s)
{
	list_each_safe (it, next, &s->freezes) {
		list_remove(it);
		free(list_entry(it, struct freeze, link));
	}
}

bool sandboxes_use_snapshot(struct sandboxes *s, const char *snapshot)
{
	list_each_safe (it, next, &s->all) {
		const struct sandbox *b = list_entry(it, struct sandbox, link);

		if (b->spec.snapshot_id && strcmp(b->spec.snapshot_id, snapshot) == 0)
			return true;
	}
	return false;
}

int sandboxes_add_event(struct sandboxes *s, const char *id, const char *reason,
			const char *message, struct err *e)
{
	struct sandbox *b = map_get(s->by_id, view_of(id));

	return b ? sandboxes_note(s, b, "Normal", reason, message, e) : 0;
}
