/*
 * server/sandboxes.c - finding, ending, pausing and renewing sandboxes.
 *
 * An operation changes the runtime first, then the record, then answers: what was answered is on
 * disk, and what was killed half-way is found again at the next start by comparing the two.
 */
#include "server/sandboxes.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/config.h"
#include "server/expiry.h"
#include "server/images.h"
#include "server/policing.h"
#include "server/sandboxes_int.h"
#include "server/volumes.h"
#include "store/store.h"

int64_t sandboxes_now_us(void)
{
	return (int64_t)(clock_wall_ns() / 1000);
}

/* ---- records ---- */

int sandboxes_save(struct sandboxes *s, struct sandbox *b, struct err *e)
{
	struct store_sandbox record = {
		.id = b->id,
		.state = sandbox_state_name(b->state),
		.reason = b->reason,
		.message = b->message,
		.created_us = b->created_us,
		.changed_us = b->changed_us,
		.expires_us = b->expires_us,
		.pid = b->handle.pid,
		.start_time = b->handle.start_time,
		.token = b->token,
	};

	if (!b->spec_text) {
		int r = sandbox_spec_format(&b->spec, &b->spec_text, e);

		if (r < 0)
			return r;
	}
	record.spec = b->spec_text;
	return store_put_sandbox(s->store, &record, e);
}

int sandboxes_note(struct sandboxes *s, const struct sandbox *b, const char *kind,
		   const char *reason, const char *message, struct err *e)
{
	struct store_event ev = {
		.at_us = sandboxes_now_us(),
		.kind = kind,
		.reason = reason,
		.message = message,
	};

	return store_add_event(s->store, b->id, &ev, e);
}

int sandboxes_record(struct sandboxes *s, struct sandbox *b, const char *kind, const char *reason,
		     const char *message, struct err *e)
{
	int r = store_begin(s->store, e);

	if (r < 0)
		return r;
	r = sandboxes_save(s, b, e);
	if (r == 0)
		r = sandboxes_note(s, b, kind, reason, message, e);
	return store_end(s->store, r, e);
}

void sandboxes_become(struct sandbox *b, enum sandbox_state state, const char *reason,
		      const char *message)
{
	b->state = state;
	b->reason = reason;
	free(b->message);
	b->message = message ? mem_strdup(message) : NULL;
	b->changed_us = sandboxes_now_us();
}

/* ---- finding ---- */

struct sandbox *sandboxes_find(struct sandboxes *s, struct view id)
{
	struct sandbox *b = map_get(s->by_id, id);

	/* One that nobody was told of is nobody's business yet. */
	return b && !b->hidden ? b : NULL;
}

bool sandboxes_expired(const struct sandboxes *s, struct view id)
{
	for (size_t i = 0; i < MIN(s->expired_n, (size_t)SANDBOXES_EXPIRED); i++)
		if (view_is(id, s->expired[i]))
			return true;
	return false;
}

size_t sandboxes_count(const struct sandboxes *s)
{
	return map_len(s->by_id);
}

struct sandbox *sandboxes_next(struct sandboxes *s, struct sandbox *after)
{
	struct list *it = after ? after->link.next : s->all.next;

	for (; it != &s->all; it = it->next) {
		struct sandbox *b = list_entry(it, struct sandbox, link);

		if (!b->hidden)
			return b;
	}
	return NULL;
}

void sandboxes_drop(struct sandboxes *s, struct sandbox *b)
{
	pending_cancel(b);
	policing_end(s, b);
	if (b->counted)
		images_leave(s->images, &b->spec.root);
	expiry_remove(s->expiry, b);
	volumes_release(s->volumes, &b->spec.volumes,
			b->handle.pid > 0 ? VOLUMES_ENDED : VOLUMES_NEVER_BEGAN);
	map_remove(s->by_id, view_of(b->id));
	sandbox_free(b);
}

struct runtime *sandboxes_runtime(struct sandboxes *s)
{
	return s->runtime;
}

/* ---- operations ---- */

struct operation *sandboxes_begin(struct sandboxes *s, struct sandbox *b, sandboxes_fn *fn,
				  void *arg)
{
	struct operation *op = mem_new(struct operation);

	op->service = s;
	op->sandbox = b;
	op->fn = fn;
	op->arg = arg;
	b->busy = true;
	return op;
}

void sandboxes_end(struct operation *op, struct sandbox *b, const struct failure *f)
{
	struct sandboxes *s = op->service;

	if (b)
		b->busy = false;
	op->fn(op->arg, b, f);
	free(op);
	if (s->settled)
		s->settled(s->settled_arg);
}

void sandboxes_on_settled(struct sandboxes *s, void (*fn)(void *arg), void *arg)
{
	s->settled = fn;
	s->settled_arg = arg;
}

static void end_failed(struct operation *op, struct sandbox *b, int status, const char *code,
		       const struct err *e)
{
	struct failure f = FAILURE_NONE;

	failure_set(&f, status, code, "%s", e->msg);
	sandboxes_end(op, b, &f);
}

static bool refuse_if_busy(struct sandbox *b, sandboxes_fn *fn, void *arg)
{
	struct failure f = FAILURE_NONE;

	if (!b->busy)
		return false;
	failure_set(&f, 409, "DOCKER::SANDBOX_BUSY",
		    "sandbox '%s' is busy with another operation; try again", b->id);
	f.retry_after_s = 1;
	fn(arg, b, &f);
	return true;
}

/* ---- delete ---- */

static void killed(void *arg, const struct err *e)
{
	struct operation *op = arg;
	struct sandboxes *s = op->service;
	struct sandbox *b = op->sandbox;
	struct err not_saved = ERR_NONE;

	if (e && e->code != -ENOENT) {
		sandboxes_become(b, SANDBOX_FAILED, SANDBOX_REASON_LOST, e->msg);
		end_failed(op, b, 500, "DOCKER::SANDBOX_DELETE_FAILED", e);
		return;
	}
	if (store_begin(s->store, &not_saved) < 0 ||
	    store_end(s->store, store_delete_sandbox(s->store, b->id, &not_saved), &not_saved) <
		    0) {
		sandboxes_become(b, SANDBOX_FAILED, SANDBOX_REASON_LOST, not_saved.msg);
		end_failed(op, b, 500, "DOCKER::SANDBOX_DELETE_FAILED", &not_saved);
		return;
	}
	sandboxes_drop(s, b);
	sandboxes_end(op, NULL, NULL);
}

void sandboxes_delete(struct sandboxes *s, struct sandbox *b, sandboxes_fn *fn, void *arg)
{
	if (sandboxes_put_off(b, sandboxes_delete, fn, arg) || refuse_if_busy(b, fn, arg))
		return;
	pending_cancel(b);
	b->state = SANDBOX_STOPPING;
	s->runtime->ops->kill(s->runtime, b->id, killed, sandboxes_begin(s, b, fn, arg));
}

/* ---- pause and resume ---- */

static void paused(void *arg, const struct err *e)
{
	struct operation *op = arg;
	struct sandbox *b = op->sandbox;
	struct err not_saved = ERR_NONE;

	/* It may have ended meanwhile; then that is what counts. */
	if (e || b->state != SANDBOX_PAUSING) {
		if (b->state == SANDBOX_PAUSING)
			sandboxes_become(b, SANDBOX_RUNNING, SANDBOX_REASON_RUNNING, NULL);
		err_set(&not_saved, -ESRCH, "sandbox '%s' has ended", b->id);
		end_failed(op, b, 500, "DOCKER::SANDBOX_PAUSE_FAILED", e ? e : &not_saved);
		return;
	}
	sandboxes_become(b, SANDBOX_PAUSED, SANDBOX_REASON_PAUSED, NULL);
	if (sandboxes_record(op->service, b, "Normal", "Paused", "the sandbox was paused",
			     &not_saved) < 0)
		end_failed(op, b, 500, "DOCKER::SANDBOX_PAUSE_FAILED", &not_saved);
	else
		sandboxes_end(op, b, NULL);
}

void sandboxes_pause(struct sandboxes *s, struct sandbox *b, sandboxes_fn *fn, void *arg)
{
	struct failure f = FAILURE_NONE;

	if (sandboxes_put_off(b, sandboxes_pause, fn, arg) || refuse_if_busy(b, fn, arg))
		return;
	if (b->state != SANDBOX_RUNNING) {
		failure_set(&f, 409, "DOCKER::SANDBOX_NOT_RUNNING",
			    "sandbox '%s' is %s, not Running", b->id, sandbox_state_name(b->state));
		fn(arg, b, &f);
		return;
	}
	b->state = SANDBOX_PAUSING;
	s->runtime->ops->pause(s->runtime, b->id, paused, sandboxes_begin(s, b, fn, arg));
}

static void resumed(void *arg, const struct err *e)
{
	struct operation *op = arg;
	struct sandbox *b = op->sandbox;
	struct err not_saved = ERR_NONE;

	if (e || b->state != SANDBOX_RESUMING) {
		if (b->state == SANDBOX_RESUMING)
			sandboxes_become(b, SANDBOX_PAUSED, SANDBOX_REASON_PAUSED, NULL);
		err_set(&not_saved, -ESRCH, "sandbox '%s' has ended", b->id);
		end_failed(op, b, 500, "DOCKER::SANDBOX_RESUME_FAILED", e ? e : &not_saved);
		return;
	}
	sandboxes_become(b, SANDBOX_RUNNING, SANDBOX_REASON_RUNNING, NULL);
	if (sandboxes_record(op->service, b, "Normal", "Resumed", "the sandbox was resumed",
			     &not_saved) < 0)
		end_failed(op, b, 500, "DOCKER::SANDBOX_RESUME_FAILED", &not_saved);
	else
		sandboxes_end(op, b, NULL);
}

void sandboxes_resume(struct sandboxes *s, struct sandbox *b, sandboxes_fn *fn, void *arg)
{
	struct failure f = FAILURE_NONE;

	if (sandboxes_put_off(b, sandboxes_resume, fn, arg) || refuse_if_busy(b, fn, arg))
		return;
	if (b->state != SANDBOX_PAUSED) {
		failure_set(&f, 409, "DOCKER::SANDBOX_NOT_PAUSED", "sandbox '%s' is %s, not Paused",
			    b->id, sandbox_state_name(b->state));
		fn(arg, b, &f);
		return;
	}
	b->state = SANDBOX_RESUMING;
	s->runtime->ops->resume(s->runtime, b->id, resumed, sandboxes_begin(s, b, fn, arg));
}

/* ---- changes that need no runtime ---- */

int sandboxes_renew(struct sandboxes *s, struct sandbox *b, int64_t expires_us, struct failure *f)
{
	int64_t before = b->expires_us;
	struct err e = ERR_NONE;

	if (expires_us <= sandboxes_now_us())
		return failure_set(f, 400, "DOCKER::INVALID_EXPIRATION",
				   "expiresAt must lie in the future");
	if (before == 0)
		return failure_set(f, 409, "DOCKER::INVALID_EXPIRATION",
				   "sandbox '%s' never expires: it was created without a timeout",
				   b->id);
	b->expires_us = expires_us;
	if (sandboxes_save(s, b, &e) < 0) {
		b->expires_us = before;
		return failure_set(f, 500, "SANDBOX::INTERNAL_ERROR", "%s", e.msg);
	}
	expiry_update(s->expiry, b);
	return 0;
}

int sandboxes_patch_metadata(struct sandboxes *s, struct sandbox *b,
			     const struct sandboxes_patch *patch, size_t n, struct failure *f)
{
	struct err e = ERR_NONE;

	for (size_t i = 0; i < n; i++) {
		if (patch[i].remove)
			pairs_remove(&b->spec.metadata, patch[i].key);
		else
			pairs_set(&b->spec.metadata, patch[i].key, patch[i].value);
	}
	b->spec.has_metadata = b->spec.metadata.n > 0;
	free(take_ptr(b->spec_text));
	if (sandboxes_save(s, b, &e) < 0)
		return failure_set(f, 500, "SANDBOX::INTERNAL_ERROR", "%s", e.msg);
	return 0;
}

void sandboxes_accessed(struct sandboxes *s, struct sandbox *b)
{
	int64_t now = sandboxes_now_us(), wanted;
	struct failure f = FAILURE_NONE;

	if (!s->config->renew_enabled || b->spec.renew_extend_s == 0 || b->expires_us == 0 ||
	    b->state != SANDBOX_RUNNING ||
	    now - b->renewed_us < s->config->renew_min_interval_seconds * 1000000)
		return;
	wanted = now + b->spec.renew_extend_s * 1000000;
	if (wanted > b->expires_us && sandboxes_renew(s, b, wanted, &f) < 0) {
		log_line(LOG_WARN, "cannot renew a sandbox that is in use", LOG_S("box", b->id),
			 LOG_S("err", f.message));
		return;
	}
	b->renewed_us = now;
}

int sandboxes_each_event(struct sandboxes *s, const struct sandbox *b, unsigned limit,
			 int (*fn)(void *arg, const struct store_event *ev), void *arg,
			 struct err *e)
{
	return store_each_event(s->store, b->id, limit, fn, arg, e);
}
