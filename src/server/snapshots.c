/*
 * server/snapshots.c - taking snapshots, restoring from them, forgetting them.
 *
 * Get a program ready, freeze, copy, thaw, record: in this order, so that whatever is killed in
 * between leaves a layer without a record, which the sweep at the next start removes, and a frozen
 * sandbox, which its adoption thaws.  A snapshot that was under way then has failed, and says so.
 */
#include "server/snapshots.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rand.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "server/failure.h"
#include "server/images.h"
#include "server/jobs.h"
#include "server/layers.h"
#include "server/sandboxes.h"
#include "store/store_images.h"
#include "store/store_snapshots.h"

#define SNAPSHOTS_MAX 16384
#define REQUEST_MAX   1024
#define TRIES_MAX     3 /* of a job that ends without a word */

struct snapshots {
	struct snapshots_means means;
	struct map *by_id;
	struct list all;      /* newest first */
	struct list captures; /* under way */
};

/* One that is being taken. */
struct capture {
	struct list link;
	struct snapshots *service;
	struct snapshot *snapshot; /* stays: one that is Creating cannot be deleted */
	struct job *job;
	uint64_t number;	       /* of the layer to be */
	uint64_t frozen_us, thawed_us; /* monotonic */
	uint64_t bytes, files;
	enum { CAPTURE_RESERVED, CAPTURE_FREEZING, CAPTURE_FROZEN } stage; /* of the sandbox */
	unsigned tries;
	bool failed;
};

/* ---- records ---- */

static int save(struct snapshots *s, const struct snapshot *n, struct err *e)
{
	osb_cleanup(mem_freep) char *restore = NULL;
	struct store_snapshot record = {
		.id = n->id,
		.sandbox_id = n->sandbox_id,
		.name = n->name,
		.state = snapshot_state_name(n->state),
		.reason = n->reason,
		.message = n->message,
		.created_us = n->created_us,
		.changed_us = n->changed_us,
		.layer = n->layer,
	};
	int r = snapshot_restore_format(n, &restore, e);

	if (r < 0)
		return r;
	record.restore = restore;
	return store_put_snapshot(s->means.store, &record, e);
}

static void add(struct snapshots *s, struct snapshot *n)
{
	list_push_front(&s->all, &n->link);
	map_put(s->by_id, view_of(n->id), n);
}

static void drop(struct snapshots *s, struct snapshot *n)
{
	if (n->layer)
		images_leave(s->means.images, &n->root);
	map_remove(s->by_id, view_of(n->id));
	snapshot_free(n);
}

struct snapshot *snapshots_find(struct snapshots *s, struct view id)
{
	return map_get(s->by_id, id);
}

struct snapshot *snapshots_next(struct snapshots *s, struct snapshot *after)
{
	struct list *it = after ? after->link.next : s->all.next;

	return it == &s->all ? NULL : list_entry(it, struct snapshot, link);
}

/* ---- taking ---- */

static void finish(struct capture *c)
{
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
	if (save(c->service, n, &e) < 0)
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
	r = save(s, n, e);
	if (r == 0)
		return sandboxes_add_event(s->means.sandboxes, n->sandbox_id, "Snapshotted", text,
					   e);
	images_leave(s->means.images, &n->root);
	n->root.layers_n--;
	n->layer = 0;
	return r;
}

static void thawed(void *arg, struct sandbox *b, const struct failure *f)
{
	struct capture *c = arg;
	struct snapshot *n = c->snapshot;
	struct err e = ERR_NONE;

	(void)b;
	c->thawed_us = clock_mono_us();
	if (f)
		log_line(LOG_WARN, "cannot thaw a sandbox after its snapshot",
			 LOG_S("box", n->sandbox_id), LOG_S("err", f->message));
	if (!c->failed && record_ready(c, &e) < 0)
		fail(c, e.msg);
	if (!c->failed)
		log_line(LOG_INFO, "a snapshot was taken", LOG_S("snapshot", n->id),
			 LOG_S("box", n->sandbox_id), LOG_S("message", n->message));
	finish(c);
}

static void thaw(struct capture *c)
{
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
	thaw(c);
}

static void start_job(struct capture *c);

/* Whatever it has written is discarded; then the sandbox moves, if it stood still. */
static void not_captured(void *arg, const char *code, const char *message)
{
	struct capture *c = arg;

	c->job = NULL;
	if (strcmp(code, JOB_CODE_LOST) == 0 && c->stage != CAPTURE_FREEZING &&
	    ++c->tries < TRIES_MAX) {
		start_job(c);
		return;
	}
	fail(c, message);
	layers_discard(c->service->means.layers, &c->number, 1);
	if (c->stage == CAPTURE_FROZEN) {
		thaw(c);
	} else if (c->stage == CAPTURE_RESERVED) {
		sandboxes_unreserve(c->service->means.sandboxes, c->snapshot->sandbox_id);
		finish(c);
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

/* The program is there and waits: the sandbox need not stand still any earlier. */
static void job_news(void *arg, struct view name, const struct json *value)
{
	struct capture *c = arg;

	(void)value;
	if (!view_is(name, "ready"))
		return;
	if (c->stage == CAPTURE_FROZEN) {
		job_say(c->job, VIEW("{}"));
		return;
	}
	c->stage = CAPTURE_FREEZING;
	sandboxes_freeze(c->service->means.sandboxes, c->snapshot->sandbox_id, frozen, c);
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

static int check_source(struct snapshots *s, const struct sandbox *b, struct failure *f)
{
	if (b->state != SANDBOX_RUNNING)
		return failure_set(f, 409, "SNAPSHOT::INVALID_SOURCE_STATE",
				   "sandbox '%s' is %s, not Running", b->id,
				   sandbox_state_name(b->state));
	if (b->busy && !b->captured) {
		failure_set(f, 409, "DOCKER::SANDBOX_BUSY",
			    "sandbox '%s' is busy with another operation; try again", b->id);
		f->retry_after_s = 1;
		return -1;
	}
	if (b->spec.root.layers_n >= SNAPSHOT_LAYERS_MAX)
		return failure_set(
			f, 409, "SNAPSHOT::TOO_MANY_LAYERS",
			"sandbox '%s' is made of %zu layers, one more is too many: "
			"export a snapshot and import it again to make one layer of them",
			b->id, b->spec.root.layers_n);
	if (map_len(s->by_id) >= SNAPSHOTS_MAX)
		return failure_set(f, 429, "SNAPSHOT::LIMIT_REACHED",
				   "there are %d snapshots, more are not allowed", SNAPSHOTS_MAX);
	return 0;
}

struct snapshot *snapshots_take(struct snapshots *s, struct sandbox *b, struct view name,
				struct failure *f)
{
	struct capture *c;
	struct snapshot *n;
	struct err e = ERR_NONE;

	if (check_source(s, b, f) < 0)
		return NULL;
	n = snapshot_new();
	rand_uuid(n->id);
	memcpy(n->sandbox_id, b->id, sizeof(n->sandbox_id));
	n->name = name.len ? mem_strndup(name.p, name.len) : NULL;
	sandbox_root_copy(&n->root, &b->spec.root);
	snapshot_become(n, SNAPSHOT_CREATING, SNAPSHOT_REASON_ACCEPTED,
			"Snapshot creation accepted.");
	n->created_us = n->changed_us;
	if (save(s, n, &e) < 0) {
		failure_set(f, 500, "SNAPSHOT::CREATE_FAILED", "%s", e.msg);
		snapshot_free(n);
		return NULL;
	}
	add(s, n);
	c = mem_new(struct capture);
	c->service = s;
	c->snapshot = n;
	list_push_back(&s->captures, &c->link);
	sandboxes_reserve(s->means.sandboxes, b, reserved, c);
	return n;
}

/* ---- deleting ---- */

int snapshots_delete(struct snapshots *s, struct snapshot *n, struct failure *f)
{
	struct err e = ERR_NONE;

	if (n->state == SNAPSHOT_CREATING)
		return failure_set(f, 409, "SNAPSHOT::INVALID_STATE",
				   "snapshot '%s' is still being created", n->id);
	if (n->state != SNAPSHOT_DELETING) {
		snapshot_become(n, SNAPSHOT_DELETING, SNAPSHOT_REASON_REQUESTED,
				"Snapshot deletion requested.");
		if (save(s, n, &e) < 0)
			return failure_set(f, 500, "SNAPSHOT::DELETE_FAILED", "%s", e.msg);
	}
	if (sandboxes_use_snapshot(s->means.sandboxes, n->id))
		return failure_set(f, 409, "SNAPSHOT::DELETE_CONFLICT",
				   "snapshot '%s' is in use: delete the sandboxes that were made "
				   "from it, then try again",
				   n->id);
	if (store_delete_snapshot(s->means.store, n->id, &e) < 0)
		return failure_set(f, 500, "SNAPSHOT::DELETE_FAILED", "%s", e.msg);
	log_line(LOG_INFO, "a snapshot was deleted", LOG_S("snapshot", n->id));
	drop(s, n);
	return 0;
}

/* ---- restoring ---- */

int snapshots_restore(struct snapshots *s, struct sandbox_spec *spec, struct failure *f)
{
	struct snapshot *n;

	if (!spec->snapshot_id)
		return 0;
	n = snapshots_find(s, view_of(spec->snapshot_id));
	if (!n)
		return failure_set(f, 404, "SNAPSHOT::NOT_FOUND", "there is no snapshot '%.64s'",
				   spec->snapshot_id);
	if (n->state != SNAPSHOT_READY)
		return failure_set(f, 409, "SNAPSHOT::NOT_READY", "snapshot '%s' is %s, not Ready",
				   n->id, snapshot_state_name(n->state));
	if (n->layer == 0 || n->root.layers_n == 0)
		return failure_set(f, 409, "SNAPSHOT::INVALID_RESTORE_CONFIG",
				   "snapshot '%s' holds nothing to restore", n->id);
	sandbox_root_done(&spec->root);
	sandbox_root_copy(&spec->root, &n->root);
	return 0;
}

/* ---- beginning and end ---- */

static int load_one(void *arg, const struct store_snapshot *record)
{
	struct snapshots *s = arg;
	struct snapshot *n = snapshot_new();
	struct err e = ERR_NONE;

	if (snapshot_load(n, record, &e) < 0) {
		log_line(LOG_ERROR, "ignoring a malformed record", LOG_S("snapshot", record->id),
			 LOG_S("err", e.msg));
		snapshot_free(n);
		return 0;
	}
	if (n->layer)
		images_use(s->means.images, &n->root);
	add(s, n);
	return 0;
}

/* What was under way when the server was killed: a capture has failed, a deletion goes on. */
static int settle(struct snapshots *s, struct snapshot *n, struct err *e)
{
	struct failure f = FAILURE_NONE;

	if (n->state == SNAPSHOT_CREATING) {
		snapshot_become(n, SNAPSHOT_FAILED, SNAPSHOT_REASON_RECOVERY,
				"the server ended while the snapshot was being taken");
		return save(s, n, e);
	}
	if (n->state == SNAPSHOT_DELETING && snapshots_delete(s, n, &f) < 0)
		log_line(LOG_INFO, "a snapshot is not deleted yet", LOG_S("err", f.message));
	return 0;
}

int snapshots_new(const struct snapshots_means *means, struct snapshots **ret, struct err *e)
{
	struct snapshots *s = mem_new(struct snapshots);
	int r;

	s->means = *means;
	s->by_id = map_new();
	list_init(&s->all);
	list_init(&s->captures);
	r = store_each_snapshot(means->store, load_one, s, e);
	list_each_safe (it, next, &s->all)
		if (r == 0)
			r = settle(s, list_entry(it, struct snapshot, link), e);
	if (r < 0) {
		snapshots_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void snapshots_free(struct snapshots *s)
{
	if (!s)
		return;
	list_each_safe (it, next, &s->captures) {
		struct capture *c = list_entry(it, struct capture, link);

		job_cancel(c->job);
		finish(c);
	}
	list_each_safe (it, next, &s->all)
		snapshot_free(list_entry(it, struct snapshot, link));
	map_free(s->by_id);
	free(s);
}
