/*
 * server/layers.c - layers by number and by what they hold; users; removal.
 */
#include "server/layers.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/json_writer.h"
#include "net/loop.h"
#include "runtime/runtime.h"
#include "server/jobs.h"
#include "store/store.h"
#include "store/store_images.h"

#define SWEEP_MS    200 /* several that go together are one job */
#define REQUEST_MAX ((size_t)1 << 20)
#define SWEEP_MAX   256 /* at once */

struct layers {
	struct store *store;
	struct jobs *jobs;
	struct runtime *runtime;
	struct map *by_number, *by_diff;
	struct loop_timer *sweep;
	unsigned holders;
	uint64_t image_bytes;
};

static struct view key_of(const uint64_t *number)
{
	return view_mem((const char *)number, sizeof(*number));
}

static struct layer *find(const struct layers *l, uint64_t number)
{
	return map_get(l->by_number, key_of(&number));
}

const struct layer *layers_get(const struct layers *l, uint64_t number)
{
	return find(l, number);
}

const struct layer *layers_find(const struct layers *l, struct view diff_id)
{
	return map_get(l->by_diff, diff_id);
}

const struct layer *layers_next(const struct layers *l, size_t *pos)
{
	struct view key;
	void *value;

	return map_next(l->by_number, pos, &key, &value) ? value : NULL;
}

uint64_t layers_image_bytes(const struct layers *l)
{
	return l->image_bytes;
}

/* ---- removal ---- */

static void forget(struct layers *l, struct layer *x)
{
	map_remove(l->by_number, key_of(&x->number));
	if (x->diff_id) {
		map_remove(l->by_diff, view_of(x->diff_id));
		l->image_bytes -= x->bytes;
	}
	free(x->diff_id);
	free(x);
}

static void removed(void *arg, const struct json *result)
{
	(void)arg;
	(void)result;
}

/* What stays on disk is removed at the next start: no record names it. */
static void not_removed(void *arg, const char *code, const char *message)
{
	(void)arg;
	log_line(LOG_WARN, "cannot remove layers, the next start will", LOG_S("code", code),
		 LOG_S("err", message));
}

static const struct job_events removal = {.done = removed, .failed = not_removed};

/* Whoever holds layers finds them by what they hold: a capture is not to be found like that. */
static size_t collect_unused(struct layers *l, struct layer **ret)
{
	struct view key;
	size_t pos = 0, n = 0;
	void *value;

	while (n < SWEEP_MAX && map_next(l->by_number, &pos, &key, &value)) {
		struct layer *x = value;

		if (x->users == 0 && !(l->holders && x->diff_id))
			ret[n++] = x;
	}
	return n;
}

void layers_discard(struct layers *l, const uint64_t *numbers, size_t n)
{
	osb_cleanup(buf_done) struct buf request = BUF_INIT(REQUEST_MAX);
	struct json_writer w;

	if (n == 0)
		return;
	json_writer_init(&w, &request);
	json_write_object(&w);
	json_put_cstr(&w, "op", "remove");
	json_write_key(&w, "layers");
	json_write_array(&w);
	for (size_t i = 0; i < n; i++)
		json_write_uint(&w, numbers[i]);
	json_write_array_end(&w);
	json_write_object_end(&w);
	if (json_writer_end(&w) == 0)
		(void)job_start(l->jobs, JOB_HEAVY, buf_view(&request), &removal, l);
}

/* Layers that have no record any more, while the runtime lets go of them. */
struct goodbye {
	struct layers *layers;
	size_t n;
	uint64_t numbers[SWEEP_MAX];
};

static void let_go(void *arg, const struct err *e)
{
	struct goodbye *g = arg;

	/* Without a runtime that answers, the next start removes them. */
	if (!e)
		layers_discard(g->layers, g->numbers, g->n);
	free(g);
}

/* First the records go, then what is kept ready on them, then the files: a layer with a record is
 * whole. */
static void sweep(void *arg)
{
	struct layers *l = arg;
	struct layer *unused[SWEEP_MAX];
	struct err e = ERR_NONE;
	struct goodbye *g;
	size_t n;

	if (!l->runtime)
		return;
	n = collect_unused(l, unused);
	if (n == 0)
		return;
	g = mem_new(struct goodbye);
	g->layers = l;
	for (size_t i = 0; i < n; i++) {
		if (store_delete_layer(l->store, unused[i]->number, &e) < 0) {
			log_line(LOG_ERROR, "cannot remove a layer", LOG_S("err", e.msg));
			continue;
		}
		g->numbers[g->n++] = unused[i]->number;
		forget(l, unused[i]);
	}
	l->runtime->ops->forget_layers(l->runtime, g->numbers, g->n, let_go, g);
	if (n == SWEEP_MAX)
		loop_timer_start(l->sweep, SWEEP_MS);
}

static void sweep_later(struct layers *l)
{
	if (!loop_timer_active(l->sweep))
		loop_timer_start(l->sweep, SWEEP_MS);
}

void layers_set_runtime(struct layers *l, struct runtime *r)
{
	l->runtime = r;
	if (r)
		sweep_later(l);
}

void layers_hold(struct layers *l)
{
	l->holders++;
}

void layers_release(struct layers *l)
{
	if (--l->holders == 0)
		sweep_later(l);
}

/* ---- users ---- */

void layers_use(struct layers *l, const uint64_t *numbers, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct layer *x = find(l, numbers[i]);

		if (x)
			x->users++;
	}
}

void layers_leave(struct layers *l, const uint64_t *numbers, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct layer *x = find(l, numbers[i]);

		if (x && x->users > 0 && --x->users == 0)
			sweep_later(l);
	}
}

/* ---- beginning ---- */

static void remember(struct layers *l, const struct store_layer *record)
{
	struct layer *x = mem_new(struct layer);

	x->number = record->number;
	x->diff_id = record->diff_id ? mem_strdup(record->diff_id) : NULL;
	x->bytes = record->bytes;
	x->files = record->files;
	x->created_us = record->created_us;
	x->host_usr = record->host_usr;
	map_put(l->by_number, key_of(&x->number), x);
	if (x->diff_id) {
		map_put(l->by_diff, view_of(x->diff_id), x);
		l->image_bytes += x->bytes;
	}
}

int layers_take_number(struct layers *l, uint64_t *ret, struct err *e)
{
	return store_take_numbers(l->store, "layer", 1, ret, e);
}

int layers_add(struct layers *l, const struct store_layer *made, struct err *e)
{
	int r = store_put_layer(l->store, made, e);

	if (r < 0)
		return r;
	remember(l, made);
	/* Whoever wanted it may have gone meanwhile. */
	sweep_later(l);
	return 0;
}

static int load_one(void *arg, const struct store_layer *record)
{
	remember(arg, record);
	return 0;
}

int layers_new(struct loop *loop, struct store *store, struct jobs *jobs, struct layers **ret,
	       struct err *e)
{
	struct layers *l = mem_new(struct layers);
	int r;

	l->store = store;
	l->jobs = jobs;
	l->by_number = map_new();
	l->by_diff = map_new();
	l->sweep = loop_timer_new(loop, sweep, l);
	l->holders = 1;
	r = store_each_layer(store, load_one, l, e);
	if (r < 0) {
		layers_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

void layers_free(struct layers *l)
{
	const struct layer *x;
	size_t pos = 0;

	if (!l)
		return;
	while ((x = layers_next(l, &pos))) {
		free(x->diff_id);
		free((void *)x);
	}
	map_free(l->by_number);
	map_free(l->by_diff);
	loop_timer_free(l->sweep);
	free(l);
}
