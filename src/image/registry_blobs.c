/*
 * image/registry_blobs.c - fetches blobs side by side, each from where it was left.
 */
#include "image/registry_blobs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "image/blob_file.h"
#include "image/registry_int.h"

#define PROGRESS_US (250 * 1000ull)
#define BUSY_US	    (200 * 1000ull) /* until a blob is looked at again that another job fetches */
#define GAIN_BYTES  (1024 * 1024)   /* progress that makes earlier failures forgotten */

enum blob_state {
	BLOB_WAITING, /* for its turn */
	BLOB_BUSY,    /* another job fetches it */
	BLOB_RUNNING,
	BLOB_PAUSED, /* between two tries */
	BLOB_DONE,
};

struct blob {
	struct fetch *f;
	const struct oci_descriptor *d;
	struct blob_file file;
	struct call call; /* while running or paused */
	enum blob_state state;
	bool resumed;  /* something of it was there before us */
	bool answered; /* the head of the current answer was looked at */
	uint64_t not_before_us;
	uint64_t gained_from; /* where the last failure left it */
	size_t layers;	      /* of the image that are this blob */
};

struct fetch {
	struct registry *r;
	const struct registry_pull *p;
	struct blob blobs[OCI_LAYERS_MAX];
	size_t blobs_n;
	struct registry_progress told, now;
	uint64_t told_us;
};

/* ---- one blob ---- */

/* Begins where the part ends. */
static int begin(void *arg, struct call *c, struct err *e)
{
	struct blob *b = arg;

	c->range_from = b->file.have;
	b->answered = false;
	return 0;
}

static int check_head(struct blob *b, const struct transfer *t, struct err *e)
{
	const struct transfer_head *h = &t->head;
	uint64_t wanted = b->file.size;

	if (h->status == 206) {
		if (!h->has_range || h->range_start != b->file.have || h->range_total != wanted)
			return err_set(e, -EBADMSG,
				       "the answer is another part of blob %.12s than asked for",
				       b->file.name);
		return 0;
	}
	if (h->has_length && h->length != wanted)
		return err_set(e, -EBADMSG, "blob %.12s has %ju bytes, the manifest says %ju",
			       b->file.name, (uintmax_t)h->length, (uintmax_t)wanted);
	/* The whole of it, though we asked for the rest. */
	return b->file.have > 0 ? blob_file_restart(&b->file, e) : 0;
}

static int keep(void *arg, const struct transfer *t, struct view bytes, struct err *e)
{
	struct blob *b = arg;
	int r = 0;

	if (!b->answered) {
		b->answered = true;
		r = check_head(b, t, e);
	}
	if (r == 0)
		r = blob_file_add(&b->file, bytes, e);
	if (r == 0 && b->file.have > b->gained_from + GAIN_BYTES) {
		b->gained_from = b->file.have;
		call_gained(&b->call);
	}
	return r;
}

static void complete(struct blob *b)
{
	struct fetch *f = b->f;

	call_done(&b->call);
	blob_file_close(&b->file);
	b->state = BLOB_DONE;
	b->file.have = b->file.size;
	f->now.layers_done += b->layers;
	f->p->events.blob(f->p->events.arg, b->d->digest);
}

static int start_request(struct blob *b, struct err *e)
{
	b->state = BLOB_RUNNING;
	return call_start(&b->call, e);
}

/* What was there before may have been spoilt: one try with nothing of it. */
static int start_afresh(struct blob *b, struct err *e)
{
	struct err ignored = ERR_NONE;
	int r;

	blob_file_close(&b->file);
	r = blob_file_open(&b->file, &ignored);
	if (r < 0)
		return e->code;
	call_restart(&b->call);
	b->resumed = false;
	if (r > 0) {
		complete(b);
		return 0;
	}
	r = blob_file_restart(&b->file, e);
	return r < 0 ? r : start_request(b, e);
}

/* An endpoint's failure is final when there is no other. */
static int failed(struct blob *b, struct err *e)
{
	bool bad = e->code == -EBADMSG;

	if (e->code != -EBADMSG && e->code != -EHOSTUNREACH && e->code != -ENOENT &&
	    e->code != -EACCES)
		return e->code;
	if (bad && b->resumed)
		return start_afresh(b, e);
	if (!call_elsewhere(&b->call))
		return e->code;
	/* Bytes of an endpoint that does not keep the rules are not built upon. */
	return bad ? start_afresh(b, e) : start_request(b, e);
}

static int finish(struct blob *b, struct err *e)
{
	int r;

	if (b->file.have < b->file.size)
		r = err_set(e, -EBADMSG, "blob %.12s ends after %ju of %ju bytes", b->file.name,
			    (uintmax_t)b->file.have, (uintmax_t)b->file.size);
	else
		r = blob_file_finish(&b->file, e);
	if (r < 0)
		return failed(b, e);
	complete(b);
	return 0;
}

/* Its transfer is over. */
static int proceed(struct blob *b, struct err *e)
{
	int r, status = b->call.t->head.status;

	if (status == 416 && b->file.have > 0) {
		call_restart(&b->call);
		r = blob_file_restart(&b->file, e);
		return r < 0 ? r : start_request(b, e);
	}
	r = call_judge(&b->call, e);
	if (r < 0)
		return failed(b, e);
	if (r == CALL_DONE)
		return finish(b, e);
	if (b->call.not_before_us <= clock_mono_us())
		return start_request(b, e);
	b->state = BLOB_PAUSED;
	b->not_before_us = b->call.not_before_us;
	return 0;
}

static int start_blob(struct blob *b, struct err *e)
{
	struct registry *r = b->f->r;
	int opened = blob_file_open(&b->file, e);

	if (opened == -EBUSY) {
		b->state = BLOB_BUSY;
		b->not_before_us = clock_mono_us() + BUSY_US;
		return 0;
	}
	if (opened < 0)
		return opened;
	if (opened > 0) {
		complete(b);
		return 0;
	}
	b->resumed = b->file.have > 0;
	b->gained_from = b->file.have;
	call_init(&b->call, r, "GET",
		  mem_printf("/v2/%s/blobs/%s", r->o->ref.repository, b->d->digest));
	b->call.before = begin;
	b->call.sink = keep;
	b->call.arg = b;
	return b->file.have == b->file.size ? finish(b, e) : start_request(b, e);
}

/* ---- all of them ---- */

static bool uses_slot(const struct blob *b)
{
	return b->state == BLOB_RUNNING || b->state == BLOB_PAUSED;
}

static size_t slots_used(const struct fetch *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->blobs_n; i++)
		n += uses_slot(&f->blobs[i]);
	return n;
}

/* Starts what may start; *ret is when the next one may. */
static int start_due(struct fetch *f, uint64_t *ret, struct err *e)
{
	uint64_t now = clock_mono_us();

	*ret = UINT64_MAX;
	for (size_t i = 0; i < f->blobs_n; i++) {
		struct blob *b = &f->blobs[i];
		int r = 0;

		if (b->state == BLOB_RUNNING || b->state == BLOB_DONE)
			continue;
		if (b->not_before_us > now)
			*ret = MIN(*ret, b->not_before_us);
		else if (b->state == BLOB_PAUSED)
			r = start_request(b, e);
		else if (slots_used(f) < f->r->o->limits.parallel)
			r = start_blob(b, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static struct blob *blob_of(struct fetch *f, const struct transfer *t)
{
	for (size_t i = 0; i < f->blobs_n; i++)
		if (uses_slot(&f->blobs[i]) && f->blobs[i].call.t == t)
			return &f->blobs[i];
	return NULL;
}

static bool all_done(const struct fetch *f)
{
	for (size_t i = 0; i < f->blobs_n; i++)
		if (f->blobs[i].state != BLOB_DONE)
			return false;
	return true;
}

static void tell(struct fetch *f, bool at_once)
{
	uint64_t now = clock_mono_us();

	if (!at_once && now < f->told_us + PROGRESS_US)
		return;
	f->now.bytes = 0;
	for (size_t i = 0; i < f->blobs_n; i++)
		f->now.bytes += f->blobs[i].file.have;
	if (!at_once && f->now.bytes == f->told.bytes && f->now.layers_done == f->told.layers_done)
		return;
	f->told = f->now;
	f->told_us = now;
	f->p->events.progress(f->p->events.arg, &f->now);
}

static int run(struct fetch *f, struct err *e)
{
	tell(f, /* at_once= */ true);
	while (!all_done(f)) {
		struct transfer *t;
		struct blob *b;
		uint64_t next;
		int r = start_due(f, &next, e);

		if (r < 0)
			return r;
		if (slots_used(f) == 0 && next == UINT64_MAX)
			continue;
		t = transfers_wait(f->r->transfers, NULL, MIN(next, clock_mono_us() + PROGRESS_US));
		b = t ? blob_of(f, t) : NULL;
		r = b ? proceed(b, e) : 0;
		if (r < 0)
			return r;
		tell(f, /* at_once= */ false);
	}
	tell(f, /* at_once= */ true);
	return 0;
}

/* ---- which ones ---- */

static bool is_had(const struct json *have, const char *diff_id)
{
	struct view one;

	for (size_t i = 0; i < json_len(have); i++)
		if (json_str(json_at(have, i), &one) && view_is(one, diff_id))
			return true;
	return false;
}

static struct blob *find(struct fetch *f, const char *digest)
{
	for (size_t i = 0; i < f->blobs_n; i++)
		if (strcmp(f->blobs[i].d->digest, digest) == 0)
			return &f->blobs[i];
	return NULL;
}

static int add(struct fetch *f, const struct oci_descriptor *d, struct err *e)
{
	struct blob *b = find(f, d->digest);

	if (b && b->d->size != d->size)
		return err_set(e, -EBADMSG, "the manifest has two sizes for %.19s...", d->digest);
	if (b) {
		b->layers++;
		return 0;
	}
	b = &f->blobs[f->blobs_n++];
	b->f = f;
	b->d = d;
	b->layers = 1;
	blob_file_init(&b->file, f->r->o->blobs_fd, d->digest, d->size);
	f->now.total += d->size;
	if (f->now.total > f->r->o->limits.total_bytes)
		return err_set(e, -EFBIG, "the layers have more than %ju bytes, the limit",
			       (uintmax_t)f->r->o->limits.total_bytes);
	return 0;
}

int registry_fetch_layers(struct registry *r, const struct registry_pull *p,
			  const struct oci_document *manifest, const struct oci_config *config,
			  struct err *e)
{
	struct fetch *f = mem_new(struct fetch);
	int result = 0;

	f->r = r;
	f->p = p;
	f->now.layers = manifest->items_n;
	for (size_t i = 0; result == 0 && i < manifest->items_n; i++) {
		if (is_had(p->have, config->diff_ids[i]))
			f->now.layers_done++;
		else
			result = add(f, &manifest->items[i], e);
	}
	if (result == 0)
		result = run(f, e);
	for (size_t i = 0; i < f->blobs_n; i++) {
		call_done(&f->blobs[i].call);
		blob_file_close(&f->blobs[i].file);
	}
	free(f);
	return result;
}
