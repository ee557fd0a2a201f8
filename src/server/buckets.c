/*
 * server/buckets.c - jobs that mount object stores and take the mounts away.
 */
#include "server/buckets.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/json_writer.h"
#include "server/failure.h"
#include "server/jobs.h"
#include "server/volume.h"
#include "store/store_images.h"

#define REQUEST_MAX 65536

struct buckets {
	struct store *store;
	struct jobs *jobs;
	struct list under_way;
};

struct mounting {
	struct list link;
	struct job *job;
	uint64_t number;
	buckets_fn *fn; /* NULL: nobody waits */
	void *arg;
};

struct buckets *buckets_new(struct store *store, struct jobs *jobs)
{
	struct buckets *b = mem_new(struct buckets);

	b->store = store;
	b->jobs = jobs;
	list_init(&b->under_way);
	return b;
}

static void end(struct mounting *m, const struct failure *f)
{
	list_remove(&m->link);
	if (m->fn)
		m->fn(m->arg, f ? 0 : m->number, f);
	free(m);
}

static void done(void *arg, const struct json *result)
{
	(void)result;
	end(arg, NULL);
}

/* What is not installed is the client's misfortune; what does not work is ours to report. */
static void failed(void *arg, const char *code, const char *message)
{
	struct mounting *m = arg;
	struct failure f = FAILURE_NONE;

	if (strcmp(code, "NOT_FOUND") == 0)
		failure_set(&f, 400, "VOLUME::UNSUPPORTED_BACKEND", "%s", message);
	else
		failure_set(&f, 500, "VOLUME::OSSFS_MOUNT_FAILED",
			    "the bucket could not be mounted: %s", message);
	if (!m->fn)
		log_line(LOG_WARN, "cannot take a bucket's mount away", LOG_S("err", message));
	end(m, &f);
}

static const struct job_events events = {.done = done, .failed = failed};

static void put_bucket(struct json_writer *w, const struct volume *v)
{
	const struct volume_bucket *b = &v->bucket;

	json_put_cstr(w, "bucket", b->bucket);
	json_put_cstr(w, "endpoint", b->endpoint);
	json_put_cstr(w, "version", b->version);
	json_put_cstr(w, "key_id", b->key_id);
	json_put_cstr(w, "key_secret", b->key_secret);
	json_put_bool(w, "read_only", v->read_only);
	json_write_key(w, "options");
	json_write_array(w);
	for (size_t i = 0; i < b->options.len; i++)
		json_write_cstr(w, b->options.v[i]);
	json_write_array_end(w);
}

/* `v` is NULL for the end of a mount. */
static void start(struct buckets *b, struct mounting *m, const struct volume *v)
{
	struct buf text = BUF_INIT(REQUEST_MAX);
	struct json_writer w;
	int r;

	list_push_back(&b->under_way, &m->link);
	json_writer_init(&w, &text);
	json_write_object(&w);
	json_put_cstr(&w, "op", v ? "mount" : "unmount");
	json_write_key(&w, "number");
	json_write_uint(&w, m->number);
	if (v)
		put_bucket(&w, v);
	json_write_object_end(&w);
	r = json_writer_end(&w);
	assert(r == 0); /* everything in it is bounded far below */
	(void)r;
	m->job = job_start(b->jobs, JOB_BUCKET, buf_view(&text), &events, m);
	explicit_bzero(text.mem, text.len); /* there are keys in it */
	buf_done(&text);
}

int buckets_mount(struct buckets *b, const struct volume *v, buckets_fn *fn, void *arg,
		  struct failure *f)
{
	struct mounting *m;
	struct err e = ERR_NONE;
	uint64_t number;

	if (!v->bucket.key_secret)
		return failure_set(f, 400, "VOLUME::INVALID_OSSFS_CREDENTIALS",
				   "volume '%s': its keys were not kept when the server ended",
				   v->name);
	if (store_take_numbers(b->store, "bucket", 1, &number, &e) < 0)
		return failure_set(f, 500, "VOLUME::OSSFS_MOUNT_FAILED", "%s", e.msg);
	m = mem_new(struct mounting);
	m->number = number;
	m->fn = fn;
	m->arg = arg;
	start(b, m, v);
	return 0;
}

void buckets_unmount(struct buckets *b, uint64_t number)
{
	struct mounting *m = mem_new(struct mounting);

	m->number = number;
	start(b, m, NULL);
}

void buckets_free(struct buckets *b)
{
	if (!b)
		return;
	list_each_safe (it, next, &b->under_way) {
		struct mounting *m = list_entry(it, struct mounting, link);

		job_cancel(m->job);
		list_remove(&m->link);
		free(m);
	}
	free(b);
}
