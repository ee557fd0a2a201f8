/*
 * server/pulls.c - which pulls there are, and who waits for them; pull_run.c is one pull's work.
 */
#include "server/pulls.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "server/images.h"
#include "server/layers.h"
#include "server/pulls_int.h"
#include "store/store.h"
#include "store/store_images.h"

#define UNDER_WAY_MAX 256
#define ENDED_MAX     64 /* still to be asked about */

static int64_t now_us(void)
{
	return (int64_t)(clock_wall_ns() / 1000);
}

static bool under_way(const struct pull *p)
{
	return p->state == PULL_QUEUED || p->state == PULL_RUNNING;
}

/* ---- finding ---- */

struct pull *pulls_next(struct pulls *p, struct pull *after)
{
	struct list *it = after ? after->link.next : p->all.next;

	return it == &p->all ? NULL : list_entry(it, struct pull, link);
}

struct pull *pulls_find(struct pulls *p, struct view id)
{
	for (struct pull *x = NULL; (x = pulls_next(p, x));)
		if (view_is(id, x->id))
			return x;
	return NULL;
}

/* The oldest first: they are served in their order. */
static struct pull *find_key(struct pulls *p, const char *key, enum pull_state state)
{
	for (struct list *it = p->all.prev; it != &p->all; it = it->prev) {
		struct pull *x = list_entry(it, struct pull, link);

		if (x->state == state && strcmp(x->key, key) == 0)
			return x;
	}
	return NULL;
}

static bool same_auth(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static struct pull *find_same(struct pulls *p, const char *key, const char *auth)
{
	for (struct pull *x = NULL; (x = pulls_next(p, x));)
		if (under_way(x) && strcmp(x->key, key) == 0 && same_auth(x->auth, auth))
			return x;
	return NULL;
}

/* ---- the end of a pull ---- */

static void wipe_auth(struct pull *p)
{
	if (p->auth)
		explicit_bzero(p->auth, strlen(p->auth));
	free(take_ptr(p->auth));
}

static void pull_free(struct pull *p)
{
	pull_stop(p);
	while (!list_empty(&p->waiting)) {
		struct pull_wait *w = list_entry(p->waiting.next, struct pull_wait, link);

		w->pull = NULL;
		list_remove(&w->link);
	}
	list_remove(&p->link);
	wipe_auth(p);
	free(p->key);
	free(p->image);
	free(p);
}

/* One goes for every one that comes. */
static void forget_old(struct pulls *all)
{
	struct pull *oldest = NULL;
	unsigned ended = 0;

	for (struct pull *p = NULL; (p = pulls_next(all, p));) {
		if (under_way(p))
			continue;
		oldest = p;
		ended++;
	}
	if (ended > ENDED_MAX)
		pull_free(oldest);
}

static void tell(struct pull *p, struct image *image)
{
	while (!list_empty(&p->waiting)) {
		struct pull_wait *w = list_entry(p->waiting.next, struct pull_wait, link);

		list_remove(&w->link);
		w->pull = NULL;
		w->ended(w->arg, image, image ? NULL : &p->failure);
	}
}

/* The record goes; it may be that of another attempt, which writes its own when it begins. */
static void forget_record(struct pull *p)
{
	struct err e = ERR_NONE;

	if (store_delete_pull(p->all->store, p->key, &e) < 0)
		log_line(LOG_ERROR, "cannot forget a pull", LOG_S("image", p->key),
			 LOG_S("err", e.msg));
}

void pulls_ended(struct pull *p, struct image *image)
{
	struct pulls *all = p->all;
	struct pull *next;

	if (p->state == PULL_RUNNING) {
		forget_record(p);
		layers_release(images_layers(all->images));
	}
	pull_stop(p);
	wipe_auth(p);
	p->ended_us = now_us();
	p->state = image ? PULL_READY : PULL_FAILED;
	if (image) {
		p->image = mem_strdup(image->id);
		log_line(LOG_INFO, "an image was pulled", LOG_S("image", p->key),
			 LOG_I("bytes", (int64_t)p->total),
			 LOG_I("ms", (p->ended_us - p->started_us) / 1000));
	} else {
		log_line(LOG_WARN, "an image could not be pulled", LOG_S("image", p->key),
			 LOG_S("err", p->failure.message));
	}
	tell(p, image);
	next = find_key(all, p->key, PULL_QUEUED);
	if (next && image)
		pulls_ended(next, image);
	else if (next)
		pull_start(next);
}

/* ---- the beginning ---- */

static struct pull *pull_new(struct pulls *all, const char *key, const char *auth)
{
	struct pull *p = mem_new(struct pull);

	p->all = all;
	rand_uuid(p->id);
	p->key = mem_strdup(key);
	p->auth = auth ? mem_strdup(auth) : NULL;
	p->started_us = now_us();
	list_init(&p->waiting);
	list_push_front(&all->all, &p->link);
	return p;
}

static struct pull *join(struct pulls *all, const char *key, const char *auth, struct failure *f)
{
	struct pull *p = find_same(all, key, auth);
	unsigned n = 0;

	if (p)
		return p;
	for (struct pull *x = NULL; (x = pulls_next(all, x));)
		n += under_way(x);
	if (n >= UNDER_WAY_MAX) {
		failure_set(f, 503, "IMAGE::TOO_MANY_PULLS", "%u images are being pulled already",
			    n);
		f->retry_after_s = 5;
		return NULL;
	}
	forget_old(all);
	p = pull_new(all, key, auth);
	if (!find_key(all, key, PULL_RUNNING))
		pull_start(p);
	return p;
}

static void add_waiting(struct pull *p, struct pull_wait *w, const struct failure *f)
{
	list_init(&w->link);
	w->pull = p;
	if (!p) {
		w->ended(w->arg, NULL, f);
		return;
	}
	list_push_back(&p->waiting, &w->link);
	if (!under_way(p))
		tell(p, NULL); /* it could not even begin */
}

void pulls_wait(struct pulls *all, const char *key, const char *auth, struct pull_wait *w)
{
	struct failure f = FAILURE_NONE;

	add_waiting(join(all, key, auth, &f), w, &f);
}

void pulls_rejoin(struct pulls *all, const char *key, struct pull_wait *w)
{
	struct failure f = FAILURE_NONE;
	struct pull *p = find_key(all, key, PULL_RUNNING);

	add_waiting(p ? p : join(all, key, NULL, &f), w, &f);
}

void pulls_leave(struct pull_wait *w)
{
	struct pull *p = w->pull;

	if (!p)
		return;
	list_remove(&w->link);
	w->pull = NULL;
	if (list_empty(&p->waiting) && !p->asked)
		pulls_cancel(p);
}

struct pull *pulls_ask(struct pulls *all, const char *key, const char *auth, struct failure *f)
{
	struct pull *p = join(all, key, auth, f);

	if (p)
		p->asked = true;
	return p;
}

void pulls_cancel(struct pull *p)
{
	if (!under_way(p))
		return;
	failure_set(&p->failure, 409, "IMAGE::PULL_CANCELLED", "the pull of '%.150s' was cancelled",
		    p->key);
	pulls_ended(p, NULL);
}

static int resume_one(void *arg, const struct store_pull *record)
{
	struct pull *p = pull_new(arg, record->reference, record->auth);

	/* Whoever waited is not known any more, but for the sandboxes, which join. */
	p->asked = true;
	p->started_us = record->started_us;
	return 0;
}

void pulls_resume(struct pulls *all)
{
	for (struct list *it = all->all.prev; it != &all->all; it = it->prev) {
		struct pull *p = list_entry(it, struct pull, link);

		if (p->state == PULL_QUEUED && !find_key(all, p->key, PULL_RUNNING))
			pull_start(p);
	}
}

int pulls_new(struct loop *l, const struct config *config, struct store *store, struct jobs *jobs,
	      struct images *images, struct pulls **ret, struct err *e)
{
	struct pulls *p = mem_new(struct pulls);
	int r;

	p->loop = l;
	p->config = config;
	p->store = store;
	p->jobs = jobs;
	p->images = images;
	list_init(&p->all);
	p->unpacks = unpacks_new(jobs, images_layers(images), config->images_max_image_bytes);
	r = store_each_pull(store, resume_one, p, e);
	if (r < 0) {
		pulls_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void pulls_free(struct pulls *p)
{
	if (!p)
		return;
	list_each_safe (it, next, &p->all)
		pull_free(list_entry(it, struct pull, link));
	unpacks_free(p->unpacks);
	free(p);
}

void pull_progress_text(const struct pull *p, char *ret, size_t size)
{
	if (p->layers == 0)
		snprintf(ret, size, "asking the registry");
	else
		snprintf(ret, size, "%u of %u layers, %.1f of %.1f MB", p->layers_done, p->layers,
			 (double)p->bytes / 1e6, (double)p->total / 1e6);
}
