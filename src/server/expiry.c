/*
 * server/expiry.c - a binary heap by time of expiry; every sandbox knows its place in it.
 */
#include "server/expiry.h"

#include <stdint.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/loop.h"
#include "server/sandbox.h"

/* Wall-clock time may jump: the timer never sleeps longer than this before it looks again. */
#define LOOK_AGAIN_MS 60000

#define NO_SLOT SIZE_MAX

struct expiry {
	struct sandbox **heap;
	size_t n, cap;
	struct loop_timer *timer;
	expiry_fn *fn;
	void *arg;
};

static int64_t now_us(void)
{
	return (int64_t)(clock_wall_ns() / 1000);
}

static void place(struct expiry *x, size_t i, struct sandbox *b)
{
	x->heap[i] = b;
	b->expiry_slot = i;
}

static void sift_up(struct expiry *x, size_t i)
{
	struct sandbox *b = x->heap[i];

	while (i > 0) {
		size_t parent = (i - 1) / 2;

		if (x->heap[parent]->expires_us <= b->expires_us)
			break;
		place(x, i, x->heap[parent]);
		i = parent;
	}
	place(x, i, b);
}

static void sift_down(struct expiry *x, size_t i)
{
	struct sandbox *b = x->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= x->n)
			break;
		if (child + 1 < x->n && x->heap[child + 1]->expires_us < x->heap[child]->expires_us)
			child++;
		if (b->expires_us <= x->heap[child]->expires_us)
			break;
		place(x, i, x->heap[child]);
		i = child;
	}
	place(x, i, b);
}

static void arm(struct expiry *x)
{
	int64_t wait_us;

	if (x->n == 0) {
		loop_timer_stop(x->timer);
		return;
	}
	wait_us = MAX(x->heap[0]->expires_us - now_us(), INT64_C(0));
	loop_timer_start(x->timer, (uint64_t)MIN(wait_us / 1000 + 1, (int64_t)LOOK_AGAIN_MS));
}

static void take_out(struct expiry *x, struct sandbox *b)
{
	size_t i = b->expiry_slot;

	if (i == NO_SLOT)
		return;
	b->expiry_slot = NO_SLOT;
	x->n--;
	if (i == x->n)
		return;
	place(x, i, x->heap[x->n]);
	sift_up(x, i);
	sift_down(x, x->heap[i]->expiry_slot);
}

static void due(void *arg)
{
	struct expiry *x = arg;
	int64_t now = now_us();

	while (x->n > 0 && x->heap[0]->expires_us <= now) {
		struct sandbox *b = x->heap[0];

		take_out(x, b);
		x->fn(x->arg, b);
	}
	arm(x);
}

struct expiry *expiry_new(struct loop *l, expiry_fn *fn, void *arg)
{
	struct expiry *x = mem_new(struct expiry);

	x->timer = loop_timer_new(l, due, x);
	x->fn = fn;
	x->arg = arg;
	return x;
}

void expiry_free(struct expiry *x)
{
	if (!x)
		return;
	loop_timer_free(x->timer);
	free(x->heap);
	free(x);
}

void expiry_remove(struct expiry *x, struct sandbox *b)
{
	take_out(x, b);
	arm(x);
}

void expiry_update(struct expiry *x, struct sandbox *b)
{
	take_out(x, b);
	if (b->expires_us != 0) {
		if (x->n == x->cap) {
			x->cap = MAX(x->cap * 2, (size_t)64);
			x->heap = mem_resize(x->heap, x->cap, sizeof(void *));
		}
		place(x, x->n++, b);
		sift_up(x, b->expiry_slot);
	}
	arm(x);
}
