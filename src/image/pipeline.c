/*
 * image/pipeline.c - a ring of buffers with one writer and two readers.
 */
#include "image/pipeline.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "image/decoder.h"

#define SLOTS	   4
#define SLOT_BYTES (512 * 1024)
#define STACK	   (512 * 1024)

/* Who is how far: buffers filled, hashed, used. */
enum { FILLED, HASHED, USED, STAGES_ };

struct pipeline {
	const struct pipeline_source *source;
	struct decoder *decoder;
	struct sha256 raw, plain;
	uint64_t plain_bytes;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t done[STAGES_];
	bool ended; /* nothing follows what is filled */
	bool stop;
	struct err failure; /* of the writer */
	struct {
		char *bytes;
		size_t n;
	} slots[SLOTS];
};

static uint64_t slowest(const struct pipeline *p)
{
	return MIN(p->done[HASHED], p->done[USED]);
}

/* Waits until buffer number `n` may be written. */
static bool await_room(struct pipeline *p, uint64_t n)
{
	bool go;

	pthread_mutex_lock(&p->lock);
	while (!p->stop && n - slowest(p) >= SLOTS)
		pthread_cond_wait(&p->changed, &p->lock);
	go = !p->stop;
	pthread_mutex_unlock(&p->lock);
	return go;
}

/* Waits until buffer number `n` is filled; false at the end. */
static bool await_filled(struct pipeline *p, uint64_t n)
{
	bool go;

	pthread_mutex_lock(&p->lock);
	while (!p->stop && !p->ended && n >= p->done[FILLED])
		pthread_cond_wait(&p->changed, &p->lock);
	go = !p->stop && n < p->done[FILLED];
	pthread_mutex_unlock(&p->lock);
	return go;
}

static void advance(struct pipeline *p, int stage)
{
	pthread_mutex_lock(&p->lock);
	p->done[stage]++;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

static void stop(struct pipeline *p)
{
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

static int fill_one(struct pipeline *p, uint64_t n, bool *ret_more, struct err *e)
{
	size_t got = 0;
	int r = decoder_read(p->decoder, p->slots[n % SLOTS].bytes, SLOT_BYTES, &got, e);

	if (r < 0)
		return r;
	p->plain_bytes += got;
	if (p->plain_bytes > p->source->max_bytes)
		return err_set(e, -EFBIG, "there are more than %ju bytes",
			       (uintmax_t)p->source->max_bytes);
	p->slots[n % SLOTS].n = got;
	*ret_more = got == SLOT_BYTES;
	if (got > 0)
		advance(p, FILLED);
	return 0;
}

static void *fill(void *arg)
{
	struct pipeline *p = arg;
	struct err e = ERR_NONE;
	bool more = true;
	int r = 0;

	for (uint64_t n = 0; r == 0 && more && await_room(p, n); n++)
		r = fill_one(p, n, &more, &e);
	pthread_mutex_lock(&p->lock);
	p->failure = e;
	p->ended = true;
	p->stop = p->stop || r < 0;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static void *hash(void *arg)
{
	struct pipeline *p = arg;

	for (uint64_t n = 0; await_filled(p, n); n++) {
		sha256_add(&p->plain, view_mem(p->slots[n % SLOTS].bytes, p->slots[n % SLOTS].n));
		advance(p, HASHED);
	}
	return NULL;
}

static int use(struct pipeline *p, pipeline_fn *fn, void *arg, struct err *e)
{
	int r = 0;

	for (uint64_t n = 0; r == 0 && await_filled(p, n); n++) {
		r = fn(arg, view_mem(p->slots[n % SLOTS].bytes, p->slots[n % SLOTS].n), e);
		advance(p, USED);
	}
	return r;
}

static int start_thread(pthread_t *ret, void *(*fn)(void *), struct pipeline *p, struct err *e)
{
	pthread_attr_t attr;
	int r;

	pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK);
	r = pthread_create(ret, &attr, fn, p);
	pthread_attr_destroy(&attr);
	return r ? err_set(e, -r, "start a thread: %s", strerror(r)) : 0;
}

static int run_threads(struct pipeline *p, pipeline_fn *fn, void *arg, struct err *e)
{
	pthread_t filler, hasher;
	int r = start_thread(&filler, fill, p, e);

	if (r < 0)
		return r;
	r = start_thread(&hasher, hash, p, e);
	if (r == 0) {
		r = use(p, fn, arg, e);
		if (r < 0)
			stop(p);
		pthread_join(hasher, NULL);
	} else {
		stop(p);
	}
	pthread_join(filler, NULL);
	if (r == 0 && p->failure.code < 0) {
		*e = p->failure;
		r = e->code;
	}
	return r;
}

int pipeline_run(const struct pipeline_source *s, pipeline_fn *fn, void *arg,
		 struct pipeline_result *ret, struct err *e)
{
	struct pipeline p = {.source = s};
	int r;

	sha256_init(&p.raw);
	sha256_init(&p.plain);
	r = decoder_new(s->fd, s->at, s->len, &p.raw, &p.decoder, e);
	if (r < 0)
		return r;
	pthread_mutex_init(&p.lock, NULL);
	pthread_cond_init(&p.changed, NULL);
	for (size_t i = 0; i < SLOTS; i++)
		p.slots[i].bytes = mem_alloc(SLOT_BYTES);
	r = run_threads(&p, fn, arg, e);
	for (size_t i = 0; i < SLOTS; i++)
		free(p.slots[i].bytes);
	pthread_cond_destroy(&p.changed);
	pthread_mutex_destroy(&p.lock);
	decoder_free(p.decoder);
	if (r < 0)
		return r;
	sha256_done(&p.raw, ret->raw_sum);
	sha256_done(&p.plain, ret->plain_sum);
	ret->plain_bytes = p.plain_bytes;
	return 0;
}
