/*
 * server/pending.c - sandboxes whose image is not here yet.
 *
 * A create waits for its image as long as a client can be expected to; then it is answered that the
 * sandbox is pending, which is written down, so that a killed server goes on with it.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/image_ref.h"
#include "net/loop.h"
#include "server/config.h"
#include "server/expiry.h"
#include "server/images.h"
#include "server/pulls.h"
#include "server/sandboxes_int.h"
#include "store/store.h"

#define MESSAGE_MAX 240

struct pending {
	struct sandboxes *service;
	struct sandbox *sandbox;
	struct operation *op; /* NULL once its client was answered */
	struct pull_wait wait;
	struct loop_timer *patience;
};

void pending_cancel(struct sandbox *b)
{
	struct pending *p = b->pending;
	struct failure f = FAILURE_NONE;

	if (!p)
		return;
	b->pending = NULL;
	pulls_leave(&p->wait);
	loop_timer_free(p->patience);
	if (p->op) {
		failure_set(&f, 503, "SANDBOX::CANCELLED", "the create was cancelled");
		sandboxes_end(p->op, NULL, &f);
	}
	free(p);
}

/* The operation that goes on, now that nothing is waited for. */
static struct operation *pending_end(struct pending *p, sandboxes_fn *fn)
{
	struct operation *op = p->op;

	p->sandbox->pending = NULL;
	loop_timer_free(p->patience);
	if (!op)
		op = sandboxes_begin(p->service, p->sandbox, fn, p->service);
	free(p);
	return op;
}

/* Nobody waits for it; its record tells. */
static void begun_later(void *arg, struct sandbox *b, const struct failure *f)
{
	(void)arg;
	if (b && !f)
		log_line(LOG_INFO, "a pending sandbox runs", LOG_S("box", b->id));
}

static void note_volumes(struct sandboxes *s, struct sandbox *b, const struct image *image)
{
	struct err e = ERR_NONE;

	if (image->facts.has_volumes &&
	    sandboxes_note(s, b, "Normal", "ImageVolumesIgnored",
			   "the image declares volumes; none is made for them, what is written "
			   "there stays in the sandbox",
			   &e) < 0)
		log_line(LOG_WARN, "cannot record an event", LOG_S("err", e.msg));
}

static void go_on(struct operation *op, struct image *image)
{
	struct sandboxes *s = op->service;
	struct sandbox *b = op->sandbox;
	struct failure f = FAILURE_NONE;

	if (images_apply(s->images, image, &b->spec, &f) < 0) {
		sandboxes_not_created(op, SANDBOX_REASON_START, &f);
		return;
	}
	free(take_ptr(b->spec_text));
	note_volumes(s, b, image);
	sandboxes_start(op);
}

static void pull_ended(void *arg, struct image *image, const struct failure *f)
{
	struct pending *p = arg;
	struct operation *op = pending_end(p, begun_later);

	sandbox_spec_forget_auth(&op->sandbox->spec);
	if (image)
		go_on(op, image);
	else
		sandboxes_not_created(op, SANDBOX_REASON_PULL, f);
}

static void say_progress(struct sandbox *b, const struct pull *pull)
{
	char progress[96], message[MESSAGE_MAX];

	pull_progress_text(pull, progress, sizeof(progress));
	snprintf(message, sizeof(message), "pulling image '%.120s': %s", b->spec.image_uri,
		 progress);
	free(b->message);
	b->message = mem_strdup(message);
}

static void pull_progress(void *arg, const struct pull *pull)
{
	struct pending *p = arg;

	say_progress(p->sandbox, pull);
}

/* Its client cannot be expected to wait any longer. */
static void answer_pending(void *arg)
{
	struct pending *p = arg;
	struct sandboxes *s = p->service;
	struct sandbox *b = p->sandbox;
	struct operation *op = take_ptr(p->op);
	struct failure f = FAILURE_NONE;
	struct err e = ERR_NONE;

	b->reason = SANDBOX_REASON_PULLING;
	say_progress(b, p->wait.pull);
	if (sandboxes_record(s, b, "Normal", "Pulling", b->message, &e) < 0) {
		failure_set(&f, 500, "DOCKER::SANDBOX_START_FAILED", "%s", e.msg);
		sandboxes_not_created(op, SANDBOX_REASON_START, &f);
		return;
	}
	b->hidden = false;
	expiry_update(s->expiry, b);
	sandboxes_end(op, b, NULL);
}

static void begin_wait(struct sandboxes *s, struct sandbox *b, struct operation *op)
{
	struct pending *p = mem_new(struct pending);

	p->service = s;
	p->sandbox = b;
	p->op = op;
	p->wait.ended = pull_ended;
	p->wait.progress = pull_progress;
	p->wait.arg = p;
	b->pending = p;
	if (op) {
		p->patience = loop_timer_new(s->loop, answer_pending, p);
		loop_timer_start(p->patience, (uint64_t)s->config->create_wait_seconds * 1000);
		pulls_wait(s->pulls, b->spec.reference, b->spec.auth, &p->wait);
	} else {
		pulls_rejoin(s->pulls, b->spec.reference, &p->wait);
	}
}

static bool policy_is(const struct sandboxes *s, const char *name)
{
	return view_iis(view_of(s->config->pull_policy), name);
}

/* One that is named by a digest cannot have changed. */
static bool must_ask(const struct sandboxes *s, const struct sandbox *b)
{
	return policy_is(s, "Always") && !strchr(b->spec.reference, '@');
}

void pending_wait(struct sandboxes *s, struct sandbox *b, struct operation *op)
{
	const char *name = images_alias(s->config, b->spec.image_uri);
	struct image *image = images_find(s->images, view_of(name));
	struct failure f = FAILURE_NONE;

	if (image && !must_ask(s, b)) {
		sandbox_spec_forget_auth(&b->spec);
		go_on(op, image);
	} else if (policy_is(s, "Never") || view_starts(view_of(name), VIEW("sha256:"))) {
		failure_set(&f, 400, "DOCKER::SANDBOX_IMAGE_PULL_FAILED",
			    "image '%.150s' is not here%s", b->spec.image_uri,
			    policy_is(s, "Never") ? ", and images.pull_policy is Never" : "");
		sandboxes_not_created(op, SANDBOX_REASON_PULL, &f);
	} else {
		begin_wait(s, b, op);
	}
}

static void resume(struct sandboxes *s, struct sandbox *b)
{
	struct image *image =
		b->spec.reference ? images_by_key(s->images, b->spec.reference) : NULL;

	if (b->spec.root.image)
		sandboxes_start(sandboxes_begin(s, b, begun_later, s));
	else if (image)
		go_on(sandboxes_begin(s, b, begun_later, s), image);
	else
		begin_wait(s, b, NULL);
}

void pending_resume(struct sandboxes *s)
{
	list_each_safe (it, next, &s->all) {
		struct sandbox *b = list_entry(it, struct sandbox, link);

		if (b->state == SANDBOX_PENDING && !b->hidden && !b->pending && !b->busy)
			resume(s, b);
	}
}
