/*
 * server/capture.c - a snapshot being taken.
 *
 * Get a program ready, freeze, copy, thaw, record: in this order, so that whatever is killed in
 * between leaves a layer without a record, which the sweep at the next start removes, and a frozen
 * sandbox, which its adoption thaws.  A snapshot that was under way then has failed, and says so.
 */
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
#include "server/failure.h"
#include "server/images.h"
#include "server/jobs.h"
#include "server/layers.h"
#include "server/sandboxes.h"
#include "server/snapshots_int.h"
#include "store/store_images.h"

#define REQUEST_MAX 1024
#define TRIES_MAX   3 /* of a job that ends without a word */

/* One that is being taken. */
struct capture {
	struct list link;
	struct snapshots *service;
	struct snapshot *snapshot;     /* stays: one that is Creating cannot be deleted */
	struct sandbox_root base;      /* held, because the sandbox may be deleted meanwhile */
	struct job *job;	       /* NULL when it is over */
	uint64_t number;	       /* of the layer to be */
	uint64_t frozen_us, thawed_us; /* monotonic */
	uint64_t bytes, files;
	enum capture_stage {
		CAPTURE_RESERVED,
		CAPTURE_FREEZING,
		CAPTURE_FROZEN,
		CAPTURE_THAWING,
		CAPTURE_THAWED
	} stage; /* of the sandbox */
	unsigned tries;
	bool failed;
};

/* What the sandbox stood on was ours too until now; a snapshot that is ready has its own share. */
static void finish(struct capture *c)
{
	images_leave(c->service->means.images, &c->base);
	sandbox_root_done(&c->base);
	list_remove(&c->link);
	free(c);
}

static void fail(struct capture *c, const char *why)
{
	struct snapshot *n = c->snapshot;
	struct err e = ERR_NONE;

	log_line(LOG_WARN, "a snapshot has failed", LOG_S("snapshot", n->id),
		 LOG_S("box", n->sandbox_id), LOG_S("err", why));
	snapshot_become(n, SNAPSHOT_FAILED, SNAPSHOT_REASON_FAILED, why);
	if (snapshots_save(c->service, n, &e) < 0)
		log_line(LOG_ERROR, "cannot record a snapshot's failure", LOG_S("snapshot", n->id),
			 LOG_S("err", e.msg));
	c->failed = true;
}

static void add_layer(struct sandbox_root *root, uint64_t number)
{
	root->layers = mem_resize(root->layers, root->layers_n + 1, sizeof(*root->layers));
	root->layers[root->layers_n++] = number;
}

static void describe(const struct capture *c, char *text, size_t size)
{
	uint64_t us = c->thawed_us - c->frozen_us;

	snprintf(text, size,
		 "captured %llu bytes in %llu files; the sandbox was frozen for %llu.%03llu ms",
		 (unsigned long long)c->bytes, (unsigned long long)c->files,
		 (unsigned long long)(us / 1000), (unsigned long long)(us % 1000));
}

/* The layer's record first: one that nobody uses is removed when the server starts again. */
static int record_ready(struct capture *c, struct err *e)
{
	struct snapshots *s = c->service;
	struct snapshot *n = c->snapshot;
	struct store_layer layer = {
		.number = c->number,
		.bytes = c->bytes,
		.files = c->files,
		.created_us = n->created_us,
		.host_usr = n->root.host_base,
	};
	char text[160];
	int r = layers_add(s->means.layers, &layer, e);

	if (r < 0)
		return r;
	add_layer(&n->root, c->number);
	images_use(s->means.images, &n->root);
	n->layer = c->number;
	describe(c, text, sizeof(text));
	snapshot_become(n, SNAPSHOT_READY, SNAPSHOT_REASON_READY, text);
	r = snapshots_save(s, n, e);
	if (r == 0)
		return sandboxes_add_event(s->means.sandboxes, n->sandbox_id, "Snapshotted", text,
					   e);
	images_leave(s->means.images, &n->root);
	n->root.layers_n--;
	n->layer = 0;
	return r;
}

/* The sandbox moves again and the job is over: whichever comes last ends it. */
static void end_if_over(struct capture *c)
{
	struct snapshot *n = c->snapshot;
	struct err e = ERR_NONE;

	if (c->stage != CAPTURE_THAWED || c->job)
		return;
	if (!c->failed && record_ready(c, &e) < 0)
		fail(c, e.msg);
	if (!c->failed)
		log_line(LOG_INFO, "a snapshot was taken", LOG_S("snapshot", n->id),
			 LOG_S("box", n->sandbox_id), LOG_S("message", n->message));
	finish(c);
}

static void thawed(void *arg, struct sandbox *b, const struct failure *f)
{
	struct capture *c = arg;

	(void)b;
	c->thawed_us = clock_mono_us();
	c->stage = CAPTURE_THAWED;
	if (f)
		log_line(LOG_WARN, "cannot thaw a sandbox after its snapshot",
			 LOG_S("box", c->snapshot->sandbox_id), LOG_S("err", f->message));
	end_if_over(c);
}

static void thaw(struct capture *c)
{
	c->stage = CAPTURE_THAWING;
	sandboxes_thaw(c->service->means.sandboxes, c->snapshot->sandbox_id, thawed, c);
}

static void captured(void *arg, const struct json *result)
{
	struct capture *c = arg;
	int64_t bytes = 0, files = 0;

	c->job = NULL;
	(void)json_int(json_get(result, "bytes"), &bytes);
	(void)json_int(json_get(result, "files"), &files);
	c->bytes = (uint64_t)bytes;
	c->files = (uint64_t)files;
	if (c->stage == CAPTURE_FROZEN)
		thaw(c);
	else
		end_if_over(c);
}

static void start_job(struct capture *c);

/* Whatever it has written is discarded; then the sandbox moves, if it stood still. */
static void not_captured(void *arg, const char *code, const char *message)
{
	struct capture *c = arg;
	bool again = c->stage == CAPTURE_RESERVED || c->stage == CAPTURE_FROZEN;

	c->job = NULL;
	if (strcmp(code, JOB_CODE_LOST) == 0 && again && ++c->tries < TRIES_MAX) {
		start_job(c);
		return;
	}
	fail(c, message);
	layers_discard(c->service->means.layers, &c->number, 1);
	if (c->stage == CAPTURE_RESERVED) {
		sandboxes_unreserve(c->service->means.sandboxes, c->snapshot->sandbox_id);
		finish(c);
	} else if (c->stage == CAPTURE_FROZEN) {
		thaw(c);
	} else {
		end_if_over(c);
	}
}

static void frozen(void *arg, struct sandbox *b, const struct failure *f)
{
	struct capture *c = arg;

	(void)b;
	if (f) {
		job_cancel(take_ptr(c->job));
		if (!c->failed)
			fail(c, f->message);
		finish(c);
		return;
	}
	c->stage = CAPTURE_FROZEN;
	c->frozen_us = clock_mono_us();
	if (c->job)
		job_say(c->job, VIEW("{}"));
	else
		thaw(c);
}

/* The program waits: the sandbox need not stand still any earlier.  Or it has copied everything,
 * and what is left is between it and the disk: the sandbox need not stand still any longer. */
static void job_news(void *arg, struct view name, const struct json *value)
{
	struct capture *c = arg;
	bool copied = false;

	if (view_is(name, "ready") && c->stage == CAPTURE_FROZEN) {
		job_say(c->job, VIEW("{}"));
	} else if (view_is(name, "ready")) {
		c->stage = CAPTURE_FREEZING;
		sandboxes_freeze(c->service->means.sandboxes, c->snapshot->sandbox_id, frozen, c);
	} else if (json_bool(json_get(value, "copied"), &copied) && copied &&
		   c->stage == CAPTURE_FROZEN) {
		thaw(c);
	}
}

static const struct job_events capturing = {
	.news = job_news, .done = captured, .failed = not_captured};

static void start_job(struct capture *c)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(REQUEST_MAX);
	struct json_writer w;
	int r;

	json_writer_init(&w, &text);
	json_write_object(&w);
	json_put_cstr(&w, "op", "capture");
	json_put_cstr(&w, "box", c->snapshot->sandbox_id);
	json_write_key(&w, "number");
	json_write_uint(&w, c->number);
	json_put_bool(&w, "host_usr", c->snapshot->root.host_base);
	json_put_bool(&w, "wait", true);
	json_write_object_end(&w);
	r = json_writer_end(&w);
	assert(r == 0); /* everything in it is bounded far below */
	(void)r;
	c->job = job_start(c->service->means.jobs, JOB_QUICK, buf_view(&text), &capturing, c);
}

static void reserved(void *arg, struct sandbox *b, const struct failure *f)
{
	struct capture *c = arg;
	struct err e = ERR_NONE;

	(void)b;
	if (f) {
		fail(c, f->message);
		finish(c);
		return;
	}
	if (layers_take_number(c->service->means.layers, &c->number, &e) < 0) {
		fail(c, e.msg);
		sandboxes_unreserve(c->service->means.sandboxes, c->snapshot->sandbox_id);
		finish(c);
		return;
	}
	start_job(c);
}

void capture_start(struct snapshots *s, struct snapshot *n, struct sandbox *b)
{
	struct capture *c = mem_new(struct capture);

	c->service = s;
	c->snapshot = n;
	sandbox_root_copy(&c->base, &b->spec.root);
	images_use(s->means.images, &c->base);
	list_push_back(&s->captures, &c->link);
	sandboxes_reserve(s->means.sandboxes, b, reserved, c);
}

void snapshots_stop(struct snapshots *s)
{
	if (!s)
		return;
	list_each_safe (it, next, &s->captures) {
		struct capture *c = list_entry(it, struct capture, link);

		/* Or the copy would see the sandbox move. */
		job_cancel(take_ptr(c->job));
		if (c->stage == CAPTURE_FREEZING || c->stage == CAPTURE_FROZEN)
			sandboxes_thaw_at_end(s->means.sandboxes, c->snapshot->sandbox_id);
	}
}

void captures_free(struct snapshots *s)
{
	list_each_safe (it, next, &s->captures) {
		struct capture *c = list_entry(it, struct capture, link);

		job_cancel(c->job);
		finish(c);
	}
}
