/*
 * net/http_pool.c - see http_pool.h.
 *
 * The newest is given out first, so that those that are not needed grow old.  A timer that runs
 * only while something rests closes the old ones, and drops names under which nothing does.
 */
#include "net/http_pool.h"

#include <stdint.h>
#include <sys/resource.h>

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/http_client.h"
#include "net/loop.h"

#define ALL_MAX	  4096
#define SHELF_MAX 512 /* under one name */
/* A new connection costs little; a server that serves one connection at a time is kept waiting by
 * one that rests, and many close theirs after a few seconds. */
#define REST_US	 UINT64_C(1000000)
#define SWEEP_MS 250
#define DROPS	 64 /* of names, per sweep: each walks the map */

struct shelf {
	struct http_pool *pool;
	struct list resting; /* newest first */
	size_t n;
};

struct resting {
	struct list link;
	struct shelf *shelf;
	struct http_call *call;
	uint64_t since_us;
};

struct http_pool {
	struct loop *loop;
	struct map *shelves;
	struct loop_timer *timer;
	size_t n, max;
};

/* The call, which is the caller's again. */
static struct http_call *take_off(struct resting *r)
{
	struct http_call *c = r->call;

	list_remove(&r->link);
	r->shelf->n--;
	r->shelf->pool->n--;
	free(r);
	return c;
}

static void on_broken(void *arg)
{
	http_call_free(take_off(arg));
}

static void close_since(struct shelf *s, uint64_t before_us)
{
	while (!list_empty(&s->resting)) {
		struct resting *r = list_entry(s->resting.prev, struct resting, link);

		if (r->since_us > before_us)
			break;
		http_call_free(take_off(r));
	}
}

/* Names that nobody uses are dropped one at a time: the map does not change while it is walked. */
static bool drop_empty(struct http_pool *p)
{
	struct view name;
	size_t pos = 0;
	void *s;

	while (map_next(p->shelves, &pos, &name, &s)) {
		if (((struct shelf *)s)->n)
			continue;
		free(map_remove(p->shelves, name));
		return true;
	}
	return false;
}

static void on_sweep(void *arg)
{
	struct http_pool *p = arg;
	uint64_t now = loop_now_us(p->loop);
	struct view name;
	size_t pos = 0;
	void *s;

	while (map_next(p->shelves, &pos, &name, &s))
		close_since(s, now - REST_US);
	for (int i = 0; i < DROPS && drop_empty(p); i++)
		;
	if (map_len(p->shelves) > 0)
		loop_timer_start(p->timer, SWEEP_MS);
}

/* Where files are few, those who rest must not take them all. */
static size_t all_max(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return ALL_MAX / 16;
	return (size_t)MIN(files.rlim_cur / 8, (rlim_t)ALL_MAX);
}

struct http_pool *http_pool_new(struct loop *l)
{
	struct http_pool *p = mem_new(struct http_pool);

	p->loop = l;
	p->max = all_max();
	p->shelves = map_new();
	p->timer = loop_timer_new(l, on_sweep, p);
	return p;
}

void http_pool_free(struct http_pool *p)
{
	struct view name;
	size_t pos = 0;
	void *s;

	if (!p)
		return;
	while (map_next(p->shelves, &pos, &name, &s)) {
		close_since(s, UINT64_MAX);
		free(s);
	}
	map_free(p->shelves);
	loop_timer_free(p->timer);
	free(p);
}

struct http_call *http_pool_take(struct http_pool *p, struct view name, bool once)
{
	struct shelf *s = map_get(p->shelves, name);

	while (s && !list_empty(&s->resting)) {
		struct resting *r = list_entry(s->resting.next, struct resting, link);
		struct http_call *c = take_off(r);

		if (!once || http_call_alive(c))
			return c;
		http_call_free(c);
	}
	return NULL;
}

void http_pool_keep(struct http_pool *p, struct view name, struct http_call *c)
{
	struct shelf *s = map_get(p->shelves, name);
	struct resting *r;

	if (p->n >= p->max || (s && s->n >= SHELF_MAX)) {
		http_call_free(c);
		return;
	}
	if (!s) {
		s = mem_new(struct shelf);
		s->pool = p;
		list_init(&s->resting);
		(void)map_put(p->shelves, name, s);
	}
	r = mem_new(struct resting);
	r->shelf = s;
	r->call = c;
	r->since_us = loop_now_us(p->loop);
	list_push_front(&s->resting, &r->link);
	s->n++;
	p->n++;
	http_call_rest(c, on_broken, r);
	if (!loop_timer_active(p->timer))
		loop_timer_start(p->timer, SWEEP_MS);
}
