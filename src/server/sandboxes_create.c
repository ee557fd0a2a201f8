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
#include "server/config.h"
#include "server/egress_client.h"
#include "server/expiry.h"
#include "server/images.h"
#include "server/policing.h"
#include "server/request_fields.h"
#include "server/sandboxes_int.h"
#include "server/volume.h"
#include "server/volumes.h"
#include "store/store.h"

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
	struct sandbox *b = sandbox_new();

	rand_uuid(b->id);
	sandbox_make_token(b->token);
	b->spec = *spec;
	*spec = (struct sandbox_spec){0};
	b->created_us = b->changed_us = sandboxes_now_us();
	sandbox_need_network_token(b);
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

/* It runs, and nobody shall know. */
static void undo(struct operation *op, int status, const struct err *e)
{
	struct sandboxes *s = op->service;
	struct sandbox *b = op->sandbox;
	struct failure f = FAILURE_NONE;

	failure_set(&f, status, status == 400 ? REQUEST_CODE : "DOCKER::SANDBOX_START_FAILED",
		    "the sandbox could not be started: %s", e->msg);
	if (status == 503)
		f.retry_after_s = 1;
	policing_end(s, b);
	sandboxes_kill_unseen(s, b->id);
	b->handle = (struct runtime_handle){0};
	sandboxes_not_created(op, SANDBOX_REASON_START, &f);
}

static void record(struct operation *op)
{
	struct sandboxes *s = op->service;
	struct sandbox *b = op->sandbox;
	struct err e = ERR_NONE;
	char id[sizeof(b->id)];

	sandboxes_become(b, SANDBOX_RUNNING, SANDBOX_REASON_RUNNING, NULL);
	if (b->hidden)
		b->changed_us = b->created_us;
	if (sandboxes_record(s, b, "Normal", "Created", "the sandbox was created", &e) < 0) {
		undo(op, 500, &e); /* what is not on disk did not happen */
		return;
	}
	if (b->hidden)
		expiry_update(s->expiry, b);
	b->hidden = false;
	memcpy(id, b->id, sizeof(id));
	sandboxes_end(op, b, NULL);
	sandboxes_note_early_end(s, id);
}

static void policed(void *arg, const struct err *e)
{
	struct operation *op = arg;

	/* What has ended meanwhile was created all the same. */
	if (e && e->code != -ESRCH && !op->sandbox->ended)
		undo(op, e->code == -EINVAL ? 400 : 503, e);
	else
		record(op);
}

static void created(void *arg, const struct runtime_handle *handle, const struct err *e)
{
	struct operation *op = arg;
	struct sandboxes *s = op->service;
	struct sandbox *b = op->sandbox;
	struct failure f = FAILURE_NONE;

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
	if (policing_is_on(b))
		egress_client_hold(s->egress, b->id, policed, op);
	else
		record(op);
}

/* ---- the beginning ---- */

/* `authority`: the certificate that it is to trust, or nothing. */
static void launch_trusting(struct operation *op, struct view authority)
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
		.policed = policing_is_on(b),
	};

	snprintf(hostname, sizeof(hostname), "%.12s", b->id);
	if (sandbox_start_file(&b->spec, s->config->exec_token ? b->token : NULL, authority,
			       &start_file, &e) < 0) {
		created(op, NULL, &e);
		return;
	}
	spec.start_file = view_of(start_file);
	s->runtime->ops->create(s->runtime, &spec, created, op);
}

static void certified(void *arg, struct view pem, const struct err *e)
{
	if (e)
		created(arg, NULL, e);
	else
		launch_trusting(arg, pem);
}

static void launch(struct operation *op)
{
	struct sandbox *b = op->sandbox;

	if (b->spec.network.credential_proxy)
		egress_client_certificate(op->service->egress, b->id, certified, op);
	else
		launch_trusting(op, VIEW_NONE);
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

	if (check_room(s, &f) < 0 || (spec->network.policy && policing_possible(s, &f) < 0)) {
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
