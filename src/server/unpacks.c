/*
 * server/unpacks.c - one job per layer, by its diff id.
 */
#include "server/unpacks.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "server/jobs.h"
#include "server/layers.h"
#include "server/state_dir.h"
#include "store/store_images.h"

#define REQUEST_MAX 4096
#define ATTEMPTS    3 /* for a program that is lost without a word */
#define DIGEST_SKIP 7 /* "sha256:" */

struct unpack {
	struct unpacks *all;
	char *digest, *media_type, *diff_id;
	uint64_t number;
	unsigned attempts;
	struct job *job;
	struct list waiting;
};

struct unpacks {
	struct jobs *jobs;
	struct layers *layers;
	uint64_t max_bytes;
	struct map *by_diff;
};

static void unpack_free(struct unpack *p)
{
	map_remove(p->all->by_diff, view_of(p->diff_id));
	job_cancel(p->job);
	list_each_safe (it, next, &p->waiting)
		list_remove(it);
	free(p->digest);
	free(p->media_type);
	free(p->diff_id);
	free(p);
}

/* A waiter may leave, or make others leave, while it is told. */
static void tell(struct unpack *p, const char *code, const char *message)
{
	uint64_t number = p->number;
	struct list told;

	list_init(&told);
	while (!list_empty(&p->waiting)) {
		struct list *first = p->waiting.next;

		list_remove(first);
		list_push_back(&told, first);
	}
	p->job = NULL;
	unpack_free(p);
	while (!list_empty(&told)) {
		struct unpack_wait *w = list_entry(told.next, struct unpack_wait, link);

		list_remove(&w->link);
		w->fn(w->arg, number, code, message);
	}
}

static void remove_blob(const struct unpack *p)
{
	osb_cleanup(mem_freep) char *path =
		mem_printf("/" STATE_DIR_BLOBS "/%s", p->digest + DIGEST_SKIP);

	(void)unlink(path);
}

static void unpacked(void *arg, const struct json *result)
{
	struct unpack *p = arg;
	struct store_layer made = {
		.number = p->number,
		.diff_id = p->diff_id,
		.created_us = (int64_t)(clock_wall_ns() / 1000),
	};
	struct err e = ERR_NONE;
	int64_t n;

	if (json_int(json_get(result, "bytes"), &n) && n >= 0)
		made.bytes = (uint64_t)n;
	if (json_int(json_get(result, "files"), &n) && n >= 0)
		made.files = (uint64_t)n;
	if (layers_add(p->all->layers, &made, &e) < 0) {
		tell(p, "INTERNAL", e.msg);
		return;
	}
	remove_blob(p);
	tell(p, NULL, NULL);
}

static void start(struct unpack *p);

/* What cannot be unpacked now cannot be unpacked later either: it is fetched again if asked for. */
static void not_unpacked(void *arg, const char *code, const char *message)
{
	struct unpack *p = arg;

	p->job = NULL;
	if (strcmp(code, JOB_CODE_LOST) == 0 && p->attempts < ATTEMPTS) {
		start(p);
		return;
	}
	if (strcmp(code, "BAD_IMAGE") == 0)
		remove_blob(p);
	/* A job that fails takes what it made with it, one that is killed does not. */
	if (strcmp(code, JOB_CODE_LOST) == 0)
		layers_discard(p->all->layers, &p->number, 1);
	tell(p, code, message);
}

static const struct job_events events = {.done = unpacked, .failed = not_unpacked};

static void start(struct unpack *p)
{
	osb_cleanup(buf_done) struct buf request = BUF_INIT(REQUEST_MAX);
	struct json_writer w;

	p->attempts++;
	json_writer_init(&w, &request);
	json_write_object(&w);
	json_put_cstr(&w, "op", "unpack");
	json_put_cstr(&w, "blob", p->digest + DIGEST_SKIP);
	json_put_cstr(&w, "media_type", p->media_type);
	json_put_cstr(&w, "diff_id", p->diff_id);
	json_put_int(&w, "number", (int64_t)p->number);
	if (p->all->max_bytes)
		json_put_int(&w, "max_bytes", (int64_t)p->all->max_bytes);
	json_write_object_end(&w);
	/* Too long is nothing that a job could take: it says so. */
	if (json_writer_end(&w) < 0)
		buf_clear(&request);
	p->job = job_start(p->all->jobs, JOB_HEAVY, buf_view(&request), &events, p);
}

static int begin(struct unpacks *u, const struct unpack_blob *blob, struct unpack **ret,
		 struct err *e)
{
	struct unpack *p;
	uint64_t number;
	int r = layers_take_number(u->layers, &number, e);

	if (r < 0)
		return r;
	p = mem_new(struct unpack);
	p->all = u;
	p->digest = mem_strndup(blob->digest.p, blob->digest.len);
	p->media_type = mem_strndup(blob->media_type.p, blob->media_type.len);
	p->diff_id = mem_strndup(blob->diff_id.p, blob->diff_id.len);
	p->number = number;
	list_init(&p->waiting);
	map_put(u->by_diff, blob->diff_id, p);
	start(p);
	*ret = p;
	return 0;
}

void unpacks_wait(struct unpacks *u, const struct unpack_blob *blob, struct unpack_wait *w)
{
	struct unpack *p = map_get(u->by_diff, blob->diff_id);
	const struct layer *there = layers_find(u->layers, blob->diff_id);
	struct err e = ERR_NONE;

	list_init(&w->link);
	if (there)
		w->fn(w->arg, there->number, NULL, NULL);
	else if (!p && begin(u, blob, &p, &e) < 0)
		w->fn(w->arg, 0, "INTERNAL", e.msg);
	else
		list_push_back(&p->waiting, &w->link);
}

/* The job goes on: what it makes is used by the next who wants it, or swept. */
void unpacks_leave(struct unpack_wait *w)
{
	if (w->link.next)
		list_remove(&w->link);
}

struct unpacks *unpacks_new(struct jobs *jobs, struct layers *layers, uint64_t max_bytes)
{
	struct unpacks *u = mem_new(struct unpacks);

	u->jobs = jobs;
	u->layers = layers;
	u->max_bytes = max_bytes;
	u->by_diff = map_new();
	return u;
}

void unpacks_free(struct unpacks *u)
{
	struct view key;
	void *value;
	size_t pos;

	if (!u)
		return;
	for (pos = 0; map_next(u->by_diff, &pos, &key, &value); pos = 0)
		unpack_free(value);
	map_free(u->by_diff);
	free(u);
}
