/*
 * server/sandboxes_create.c - from a spec to a running sandbox.
 *
 * The root comes first (an image may have to be pulled for it), then the volumes, then the runtime,
 * then the record.  Until then nobody is told of the sandbox, and a failure leaves nothing; one
 * whose client was told that it is pending fails visibly.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "codec/base64.h"
#include "server/config.h"
#include "server/expiry.h"
#include "server/images.h"
#include "server/sandboxes_int.h"
#include "server/volume.h"
#include "server/volumes.h"
#include "store/store.h"

#define TOKEN_BYTES 24

static int check_room(struct sandboxes *s, struct failure *f)
{
	if (map_len(s->by_id) >= (size_t)s->config->max_sandboxes) {
		failure_set(f, 429, "SANDBOX::LIMIT_REACHED",
			    "there are %zu sandboxes, as many as native.max_sandboxes allows",
			    map_len(s->by_id));
		f->retry_after_s = 5;
		return -1;
	}
	if (s->creating >= (size_t)s->config->max_concurrent_creates) {
		failure_set(f, 503, "SANDBOX::TOO_MANY_CREATES",
			    "%zu sandboxes are being created, as many as "
			    "native.max_concurrent_creates allows",
			    s->creating);
		f->retry_after_s = 1;
		return -1;
	}
	return 0;
}

static struct sandbox *make_record(struct sandboxes *s, struct sandbox_spec *spec,
				   int64_t timeout_s)
{
	unsigned char secret[TOKEN_BYTES];
	struct sandbox *b = sandbox_new();

	rand_uuid(b->id);
	rand_bytes(secret, sizeof(secret));
	base64_format(secret, sizeof(secret), b->token);
	/* The alphabet for URLs and headers. */
	for (char *c = b->token; *c; c++)
		*c = (char)(*c == '+' ? '-' : *c == '/' ? '_' : *c);
	b->spec = *spec;
	*spec = (struct sandbox_spec){0};
	b->created_us = b->changed_us = sandboxes_now_us();
	b->expires_us = timeout_s > 0 ? b->created_us + timeout_s * 1000000 : 0;
	b->hidden = true;
	list_push_front(&s->all, &b->link);
	map_put(s->by_id, view_of(b->id), b);
	return b;
}

/* ---- the end ---- */

void sandboxes_not_created(struct operation *op, const char *reason, const struct failure *f)
{
	struct sandboxes *s = op->service;
	struct sandbox *b = op->sandbox;
	struct err e = ERR_NONE;

	if (b->hidden) {
		sandboxes_drop(s, b);
		sandboxes_end(op, NULL, f);
		return;
	}
	sandboxes_become(b, SANDBOX_FAILED, reason, f->message);
	if (sandboxes_record(s, b, "Warning", "Failed", f->message, &e) < 0)
		log_line(LOG_ERROR, "cannot record that a sandbox has failed", LOG_S("box", b->id),
			 LOG_S("err", e.msg));
	sandboxes_end(op, b, f);
}

static void created(void *arg, const struct runtime_handle *handle, const struct err *e)
{
	struct operation *op = arg;
	struct sandboxes *s = op->service;
	struct sandbox *b = op->sandbox;
	struct failure f = FAILURE_NONE;
	struct err not_saved = ERR_NONE;

	s->creating--;
	volumes_launched(s->volumes, &b->spec.volumes);
	if (e) {
		if (!volumes_list_failure(&b->spec.volumes, e, &f))
			failure_set(&f, e->code == -EAGAIN ? 503 : 500,
				    "DOCKER::SANDBOX_START_FAILED",
				    "the sandbox could not be started: %s", e->msg);
		if (e->code == -EAGAIN)
			f.retry_after_s = 1;
		sandboxes_not_created(op, SANDBOX_REASON_START, &f);
		return;
	}
	b->handle = *handle;
	b->adopted = true;
	sandboxes_become(b, SANDBOX_RUNNING, SANDBOX_REASON_RUNNING, NULL);
	if (b->hidden)
		b->changed_us = b->created_us;
	if (sandboxes_record(s, b, "Normal", "Created", "the sandbox was created", &not_saved) <
	    0) {
		/* What is not on disk did not happen. */
		failure_set(&f, 500, "DOCKER::SANDBOX_START_FAILED", "%s", not_saved.msg);
		sandboxes_kill_unseen(s, b->id);
		b->handle = (struct runtime_handle){0};
		sandboxes_not_created(op, SANDBOX_REASON_START, &f);
		return;
	}
	if (b->hidden)
		expiry_update(s->expiry, b);
	b->hidden = false;
	sandboxes_end(op, b, NULL);
}

/* ---- the beginning ---- */

static void launch(struct operation *op)
{
	struct sandboxes *s = op->service;
	struct sandbox *b = op->sandbox;
	osb_cleanup(mem_freep) struct runtime_volume *volumes =
		volumes_list_runtime(&b->spec.volumes);
	osb_cleanup(mem_freep) char *start_file = NULL;
	struct err e = ERR_NONE;
	char hostname[16];
	struct runtime_spec spec = {
		.id = b->id,
		.host_base = b->spec.root.host_base,
		.layers = b->spec.root.layers,
		.layers_n = b->spec.root.layers_n,
		.volumes = volumes,
		.volumes_n = b->spec.volumes.n,
		.hostname = hostname,
		.limits = b->spec.runtime_limits,
		.network = s->config->network && (s->runtime->capabilities & SANDBOXES_CAN_NAT),
	};

	snprintf(hostname, sizeof(hostname), "%.12s", b->id);
	if (sandbox_start_file(&b->spec, s->config->exec_token ? b->token : NULL, &start_file, &e) <
	    0) {
		created(op, NULL, &e);
		return;
	}
	spec.start_file = view_of(start_file);
	s->runtime->ops->create(s->runtime, &spec, created, op);
}

static void volumes_ready(void *arg, const struct failure *f)
{
	struct operation *op = arg;

	if (!f) {
		free(take_ptr(op->sandbox->spec_text)); /* their numbers belong into it */
		launch(op);
		return;
	}
	op->service->creating--;
	volumes_list_done(&op->sandbox->spec.volumes); /* none of them is held */
	sandboxes_not_created(op, SANDBOX_REASON_START, f);
}

void sandboxes_start(struct operation *op)
{
	struct sandboxes *s = op->service;
	struct sandbox *b = op->sandbox;

	if (b->spec.root.layers_n && !b->counted) {
		images_use(s->images, &b->spec.root);
		b->counted = true;
	}
	s->creating++;
	if (b->spec.volumes.n)
		volumes_prepare(s->volumes, &b->spec.volumes, b->id, volumes_ready, op);
	else
		launch(op);
}

void sandboxes_create(struct sandboxes *s, struct sandbox_spec *spec, int64_t timeout_s,
		      sandboxes_fn *fn, void *arg)
{
	struct failure f = FAILURE_NONE;
	struct operation *op;
	struct sandbox *b;

	if (check_room(s, &f) < 0) {
		sandbox_spec_done(spec);
		fn(arg, NULL, &f);
		return;
	}
	b = make_record(s, spec, timeout_s);
	op = sandboxes_begin(s, b, fn, arg);
	if (b->spec.root.image) {
		sandbox_spec_forget_auth(&b->spec);
		sandboxes_start(op);
	} else {
		pending_wait(s, b, op);
	}
}
