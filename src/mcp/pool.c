/*
 * mcp/pool.c - see pool.h.
 */
#include "mcp/pool.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/mem.h"
#include "mcp/call.h"
#include "mcp/session.h"

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct list queue;
	size_t queued, threads_n, idle;
	bool ending;
	pthread_t threads[POOL_THREADS];
};

struct pool *pool_new(void)
{
	struct pool *p = mem_new(struct pool);

	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_cond_init(&p->changed, NULL);
	list_init(&p->queue);
	return p;
}

/* With the lock held; NULL = the pool ends and nothing is left. */
static struct call *wait_for_call(struct pool *p)
{
	struct call *c;

	while (list_empty(&p->queue) && !p->ending) {
		p->idle++;
		(void)pthread_cond_wait(&p->changed, &p->lock);
		p->idle--;
	}
	if (list_empty(&p->queue))
		return NULL;
	c = list_entry(p->queue.next, struct call, of_pool);
	list_remove(&c->of_pool);
	p->queued--;
	return c;
}

static void *work(void *arg)
{
	struct pool *p = arg;
	struct call *c;

	(void)pthread_mutex_lock(&p->lock);
	while ((c = wait_for_call(p))) {
		(void)pthread_mutex_unlock(&p->lock);
		call_run(c);
		session_ended(c->session, c);
		(void)pthread_mutex_lock(&p->lock);
	}
	(void)pthread_mutex_unlock(&p->lock);
	return NULL;
}

void pool_free(struct pool *p)
{
	if (!p)
		return;
	(void)pthread_mutex_lock(&p->lock);
	p->ending = true;
	(void)pthread_cond_broadcast(&p->changed);
	(void)pthread_mutex_unlock(&p->lock);
	for (size_t i = 0; i < p->threads_n; i++)
		(void)pthread_join(p->threads[i], NULL);
	(void)pthread_cond_destroy(&p->changed);
	(void)pthread_mutex_destroy(&p->lock);
	free(p);
}

bool pool_submit(struct pool *p, struct call *c)
{
	bool fits;

	(void)pthread_mutex_lock(&p->lock);
	/* Threads are made when they are needed. */
	if (p->idle <= p->queued && p->threads_n < POOL_THREADS &&
	    pthread_create(&p->threads[p->threads_n], NULL, work, p) == 0)
		p->threads_n++;
	fits = p->queued < POOL_QUEUE && p->threads_n > 0;
	if (fits) {
		list_push_back(&p->queue, &c->of_pool);
		p->queued++;
		(void)pthread_cond_signal(&p->changed);
	}
	(void)pthread_mutex_unlock(&p->lock);
	return fits;
}
