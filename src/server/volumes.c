/*
 * server/volumes.c - named volumes: records, holders, jobs.
 *
 * A directory is made before its record and removed after it: what is left when somebody is killed
 * in between is a directory without a record, which the sweep at the next start removes.
 */
#include "server/volumes.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "server/buckets.h"
#include "server/failure.h"
#include "server/job_failure.h"
#include "server/jobs.h"
#include "server/volumes_int.h"
#include "store/store_images.h"
#include "store/store_volumes.h"

#define VOLUMES_MAX 16384
#define REQUEST_MAX 4096

/* A job on one volume. */
struct operation {
	struct list link;
	struct volumes *service;
	struct named_volume *volume; /* NULL: nobody waits for what the job removes */
	struct job *job;
	volumes_fn *fn;
	volumes_size_fn *size_fn;
	void *arg;
};

static void volume_free(struct volumes *v, struct named_volume *n)
{
	map_remove(v->by_name, view_of(n->name));
	list_remove(&n->link);
	free(n->name);
	free(n);
}

static struct named_volume *volume_add(struct volumes *v, struct view name, uint64_t number)
{
	struct named_volume *n = mem_new(struct named_volume);

	n->number = number;
	n->name = mem_strndup(name.p, name.len);
	list_push_front(&v->all, &n->link);
	map_put(v->by_name, name, n);
	return n;
}

static int load_one(void *arg, const struct store_volume *record)
{
	struct volumes *v = arg;
	struct named_volume *n = volume_add(v, view_of(record->name), record->number);

	n->created_us = record->created_us;
	snprintf(n->made_by, sizeof(n->made_by), "%s", record->made_by);
	return 0;
}

int volumes_new(struct store *store, struct jobs *jobs, struct volumes **ret, struct err *e)
{
	struct volumes *v = mem_new(struct volumes);
	int r;

	v->store = store;
	v->jobs = jobs;
	v->by_name = map_new();
	list_init(&v->all);
	v->buckets = buckets_new(store, jobs);
	list_init(&v->preparing);
	list_init(&v->operations);
	r = store_each_volume(store, load_one, v, e);
	if (r < 0) {
		volumes_free(v);
		return r;
	}
	*ret = v;
	return 0;
}

struct named_volume *volumes_find(struct volumes *v, struct view name)
{
	return map_get(v->by_name, name);
}

struct named_volume *volumes_next(struct volumes *v, struct named_volume *after)
{
	struct list *it = after ? after->link.next : v->all.next;

	return it == &v->all ? NULL : list_entry(it, struct named_volume, link);
}

/* ---- jobs ---- */

/* {"op":OP,"number":N} and what else there is. */
static void start(struct operation *op, enum job_kind kind, const char *name, uint64_t number,
		  const char *upload, const struct job_events *events)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(REQUEST_MAX);
	struct json_writer w;
	int r;

	json_writer_init(&w, &text);
	json_write_object(&w);
	json_put_cstr(&w, "op", name);
	json_write_key(&w, "number");
	json_write_uint(&w, number);
	if (upload)
		json_put_cstr(&w, "upload", upload);
	json_write_object_end(&w);
	r = json_writer_end(&w);
	assert(r == 0); /* everything in it is bounded far below */
	(void)r;
	op->job = job_start(op->service->jobs, kind, buf_view(&text), events, op);
}

static struct operation *begin(struct volumes *v, struct named_volume *n, volumes_fn *fn, void *arg)
{
	struct operation *op = mem_new(struct operation);

	op->service = v;
	op->volume = n;
	op->fn = fn;
	op->arg = arg;
	list_push_back(&v->operations, &op->link);
	return op;
}

static void operation_free(struct operation *op)
{
	list_remove(&op->link);
	free(op);
}

/* Tells whoever asked, then those who wait for the volume. */
static void end(struct operation *op, struct named_volume *n, const struct failure *f)
{
	struct volumes *v = op->service;

	if (op->fn)
		op->fn(op->arg, n, f);
	operation_free(op);
	volumes_step(v);
}

/* ---- making ---- */

static void made(void *arg, const struct json *result)
{
	struct operation *op = arg;
	struct named_volume *n = op->volume;
	struct failure f = FAILURE_NONE;
	struct err e = ERR_NONE;
	struct store_volume record = {
		.number = n->number,
		.name = n->name,
		.created_us = n->created_us,
		.made_by = n->made_by,
	};

	(void)result;
	if (store_put_volume(op->service->store, &record, &e) < 0) {
		failure_set(&f, 500, "VOLUME::PVC_CREATE_FAILED", "%s", e.msg);
		volume_free(op->service, n);
		end(op, NULL, &f);
		return;
	}
	n->busy = false;
	log_line(LOG_INFO, "a volume was made", LOG_S("volume", n->name),
		 LOG_I("number", (int64_t)n->number));
	end(op, n, NULL);
}

static void not_made(void *arg, const char *code, const char *message)
{
	struct operation *op = arg;
	struct failure f = FAILURE_NONE;

	job_failure(&f, code, "VOLUME::PVC_CREATE_FAILED", "volume '%s' could not be made: %s",
		    op->volume->name, message);
	volume_free(op->service, op->volume);
	end(op, NULL, &f);
}

static const struct job_events making = {.done = made, .failed = not_made};

struct named_volume *volumes_begin(struct volumes *v, struct view name, const char *made_by,
				   volumes_fn *fn, void *arg, struct failure *f)
{
	struct named_volume *n;
	struct err e = ERR_NONE;
	uint64_t number;

	if (map_len(v->by_name) >= VOLUMES_MAX) {
		failure_set(f, 429, "VOLUME::LIMIT_REACHED",
			    "there are %d volumes, more are not allowed: remove some first",
			    VOLUMES_MAX);
		return NULL;
	}
	if (store_take_numbers(v->store, "volume", 1, &number, &e) < 0) {
		failure_set(f, 500, "VOLUME::PVC_CREATE_FAILED", "%s", e.msg);
		return NULL;
	}
	n = volume_add(v, name, number);
	n->created_us = (int64_t)(clock_wall_ns() / 1000);
	n->busy = true;
	snprintf(n->made_by, sizeof(n->made_by), "%s", made_by);
	start(begin(v, n, fn, arg), JOB_QUICK, "make_volume", number, NULL, &making);
	return n;
}

void volumes_make(struct volumes *v, struct view name, volumes_fn *fn, void *arg)
{
	struct failure f = FAILURE_NONE;

	if (volumes_find(v, name))
		failure_set(&f, 409, "VOLUME::ALREADY_EXISTS", "there is a volume '%.*s' already",
			    (int)MIN(name.len, (size_t)80), name.p);
	if (f.status || !volumes_begin(v, name, "", fn, arg, &f))
		fn(arg, NULL, &f);
}

/* ---- removing ---- */

static void removed(void *arg, const struct json *result)
{
	(void)result;
	operation_free(arg);
}

static void not_removed(void *arg, const char *code, const char *message)
{
	log_line(LOG_WARN, "cannot remove a volume's files, the next start will",
		 LOG_S("code", code), LOG_S("err", message));
	operation_free(arg);
}

static const struct job_events removing = {.done = removed, .failed = not_removed};

static int refuse_if_used(const struct named_volume *n, struct failure *f)
{
	if (!n->busy && n->users == 0)
		return 0;
	failure_set(f, 409, "VOLUME::IN_USE", "volume '%.80s' is in use: %s", n->name,
		    n->busy ? "it is being made or filled" : "sandboxes mount it");
	f->retry_after_s = n->busy ? 1 : 0;
	return -1;
}

int volumes_remove(struct volumes *v, struct named_volume *n, struct failure *f)
{
	struct err e = ERR_NONE;

	if (refuse_if_used(n, f) < 0)
		return -1;
	if (store_delete_volume(v->store, n->number, &e) < 0)
		return failure_set(f, 500, "VOLUME::REMOVE_FAILED", "%s", e.msg);
	log_line(LOG_INFO, "a volume was removed", LOG_S("volume", n->name),
		 LOG_I("number", (int64_t)n->number));
	start(begin(v, NULL, NULL, NULL), JOB_HEAVY, "remove_volume", n->number, NULL, &removing);
	volume_free(v, n);
	return 0;
}

/* ---- filling and measuring ---- */

static void seeded(void *arg, const struct json *result)
{
	struct operation *op = arg;

	(void)result;
	op->volume->busy = false;
	end(op, op->volume, NULL);
}

static void not_seeded(void *arg, const char *code, const char *message)
{
	struct operation *op = arg;
	struct failure f = FAILURE_NONE;

	op->volume->busy = false;
	job_failure(&f, code, "VOLUME::SEED_FAILED", "volume '%.60s' could not be filled: %s",
		    op->volume->name, message);
	end(op, op->volume, &f);
}

static const struct job_events seeding = {.done = seeded, .failed = not_seeded};

void volumes_seed(struct volumes *v, struct named_volume *n, const char *upload, volumes_fn *fn,
		  void *arg)
{
	struct failure f = FAILURE_NONE;

	if (refuse_if_used(n, &f) < 0) {
		fn(arg, n, &f);
		return;
	}
	n->busy = true;
	start(begin(v, n, fn, arg), JOB_HEAVY, "seed_volume", n->number, upload, &seeding);
}

static void measured(void *arg, const struct json *result)
{
	struct operation *op = arg;
	int64_t bytes = 0, files = 0;

	(void)json_int(json_get(result, "bytes"), &bytes);
	(void)json_int(json_get(result, "files"), &files);
	op->size_fn(op->arg, (uint64_t)bytes, (uint64_t)files, NULL);
	operation_free(op);
}

static void not_measured(void *arg, const char *code, const char *message)
{
	struct operation *op = arg;
	struct failure f = FAILURE_NONE;

	job_failure(&f, code, "VOLUME::PVC_INSPECT_FAILED", "the volume could not be measured: %s",
		    message);
	op->size_fn(op->arg, 0, 0, &f);
	operation_free(op);
}

static const struct job_events measuring = {.done = measured, .failed = not_measured};

void volumes_measure(struct volumes *v, struct named_volume *n, volumes_size_fn *fn, void *arg)
{
	struct operation *op = begin(v, NULL, NULL, arg);

	op->size_fn = fn;
	start(op, JOB_QUICK, "volume_size", n->number, NULL, &measuring);
}

void volumes_write_numbers(const struct volumes *v, struct json_writer *w)
{
	for (struct list *it = v->all.next; it != &v->all; it = it->next)
		json_write_uint(w, list_entry(it, struct named_volume, link)->number);
}

void volumes_free(struct volumes *v)
{
	if (!v)
		return;
	list_each_safe (it, next, &v->operations) {
		struct operation *op = list_entry(it, struct operation, link);

		job_cancel(op->job);
		operation_free(op);
	}
	volumes_forget(v);
	buckets_free(v->buckets);
	list_each_safe (it, next, &v->all)
		volume_free(v, list_entry(it, struct named_volume, link));
	map_free(v->by_name);
	free(v);
}
