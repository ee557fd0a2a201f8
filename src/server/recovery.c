/*
 * server/recovery.c - what the service does by itself: loading, adopting, noticing ends, expiring.
 *
 * At start the store says what should be running and the runtime what is: a record without a
 * process becomes Terminated or Failed with a reason, a process without a record is removed, and an
 * overdue sandbox ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/json.h"
#include "server/config.h"
#include "server/expiry.h"
#include "server/images.h"
#include "server/policing.h"
#include "server/sandboxes_int.h"
#include "server/volumes.h"
#include "store/store.h"

#define STATUS_MAX 4096

/* ---- ends ---- */

/* What execd wrote when the entrypoint ended; -1 if it did not get to it. */
static int recorded_exit_code(const char *id)
{
	osb_cleanup(fd_closep) int fd = -1;
	osb_cleanup(json_freep) struct json *v = NULL;
	struct err e = ERR_NONE;
	char path[64], text[STATUS_MAX];
	int64_t code;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/log/status.json", id); /* below our current directory */
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text));
	if (n <= 0 || json_parse(view_mem(text, (size_t)n), JSON_FIRST_VALUE, &v, &e) < 0)
		return -1;
	return json_int(json_get(v, "exit_code"), &code) && code >= 0 && code <= 255 ? (int)code
										     : -1;
}

static int exit_code_of(const char *id, int status)
{
	if (status >= 0 && WIFEXITED(status))
		return WEXITSTATUS(status);
	if (status >= 0 && WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return recorded_exit_code(id);
}

static void note_end(struct sandboxes *s, struct sandbox *b, int status, bool oom)
{
	int code = exit_code_of(b->id, status);
	struct err e = ERR_NONE;
	char message[96];

	if (code == 0) {
		snprintf(message, sizeof(message), "the entrypoint ended with exit code 0");
		sandboxes_become(b, SANDBOX_TERMINATED, SANDBOX_REASON_EXITED, message);
	} else if (oom && (code < 0 || code == 137)) {
		snprintf(message, sizeof(message), "the sandbox ran out of memory and was killed");
		sandboxes_become(b, SANDBOX_FAILED, SANDBOX_REASON_OOM, message);
	} else if (code < 0) {
		snprintf(message, sizeof(message),
			 "the sandbox's first process has gone and left no exit code");
		sandboxes_become(b, SANDBOX_FAILED, SANDBOX_REASON_LOST, message);
	} else {
		snprintf(message, sizeof(message), "the entrypoint ended with exit code %d", code);
		sandboxes_become(b, SANDBOX_FAILED, SANDBOX_REASON_ERROR, message);
	}
	if (sandboxes_record(s, b, code == 0 ? "Normal" : "Warning", "Exited", message, &e) < 0)
		log_line(LOG_ERROR, "cannot record a sandbox's end", LOG_S("box", b->id),
			 LOG_S("err", e.msg));
	policing_end(s, b);
	log_line(LOG_INFO, "a sandbox has ended", LOG_S("box", b->id), LOG_I("exit_code", code));
}

static void exit_told(void *arg, const char *id, int status, bool oom)
{
	struct sandboxes *s = arg;
	struct sandbox *b = map_get(s->by_id, view_of(id));

	if (!b || sandbox_is_over(b) || b->state == SANDBOX_STOPPING)
		return;
	if (b->state != SANDBOX_PENDING) {
		note_end(s, b, status, oom);
		return;
	}
	b->ended = true;
	b->ended_status = status;
	b->ended_oom = oom;
}

void sandboxes_note_early_end(struct sandboxes *s, const char *id)
{
	struct sandbox *b = map_get(s->by_id, view_of(id));

	if (b && b->ended && b->state == SANDBOX_RUNNING)
		note_end(s, b, b->ended_status, b->ended_oom);
}

static void on_oom(void *arg, const char *id)
{
	struct sandboxes *s = arg;
	struct sandbox *b = map_get(s->by_id, view_of(id));
	struct err e = ERR_NONE;

	if (!b)
		return;
	if (sandboxes_note(s, b, "Warning", "OOMKilled",
			   "a process was killed because the sandbox reached its memory limit",
			   &e) < 0)
		log_line(LOG_ERROR, "cannot record an event", LOG_S("box", id),
			 LOG_S("err", e.msg));
}

static void unseen_killed(void *arg, const struct err *e)
{
	(void)arg;
	if (e)
		log_line(LOG_WARN,
			 "cannot remove a sandbox that has no record, the next sweep will",
			 LOG_S("err", e->msg));
}

void sandboxes_kill_unseen(struct sandboxes *s, const char *id)
{
	s->runtime->ops->kill(s->runtime, id, unseen_killed, NULL);
}

/* ---- adoption ---- */

static void settled(void *arg, const struct err *e)
{
	struct sandboxes *s = arg;

	if (e)
		log_line(LOG_WARN, "adoption was interrupted, waiting for the next warden",
			 LOG_S("err", e->msg));
	else
		log_line(LOG_INFO, "sandboxes are adopted");
	if (!e && !s->resumed) {
		s->resumed = true;
		pending_resume(s);
	}
}

/* A server that was killed may have frozen or thawed a sandbox and not have written it down: what
 * is written counts, because nobody was told anything else. */
static void matched(void *arg, const struct err *e)
{
	(void)arg;
	if (e)
		log_line(LOG_WARN, "cannot freeze or thaw a sandbox as it was recorded",
			 LOG_S("err", e->msg));
}

static void match_record(struct sandboxes *s, struct sandbox *b)
{
	const struct runtime_ops *ops = s->runtime->ops;

	if (b->state == SANDBOX_RUNNING)
		ops->resume(s->runtime, b->id, matched, NULL);
	else if (b->state == SANDBOX_PAUSED)
		ops->pause(s->runtime, b->id, matched, NULL);
	b->unmatched = false;
}

struct adoption {
	struct sandboxes *service;
	char id[40];
};

static void adopted(void *arg, const struct err *e)
{
	struct adoption *a = arg;
	struct sandboxes *s = a->service;
	struct sandbox *b = map_get(s->by_id, view_of(a->id));

	if (b && !e) {
		b->adopted = true;
		if (b->unmatched)
			match_record(s, b);
	}
	if (b && e && e->code == -ESRCH && !sandbox_is_over(b))
		note_end(s, b, -1, false);
	free(a);
	s->adopting--;
}

/* All are sent before the end is; the runtime keeps the order. */
static void on_ready(void *arg)
{
	struct sandboxes *s = arg;

	list_each_safe (it, next, &s->all) {
		struct sandbox *b = list_entry(it, struct sandbox, link);
		struct adoption *a;

		b->adopted = false;
		if (b->state == SANDBOX_PENDING || b->handle.pid <= 0)
			continue;
		a = mem_new(struct adoption);
		a->service = s;
		memcpy(a->id, b->id, sizeof(a->id));
		s->adopting++;
		s->runtime->ops->adopt(s->runtime, b->id, &b->handle, adopted, a);
	}
	s->runtime->ops->adopt_end(s->runtime, settled, s);
}

const struct runtime_events sandboxes_events = {
	.ready = on_ready,
	.exited = exit_told,
	.oom = on_oom,
};

/* ---- expiry ---- */

static void expired_deleted(void *arg, struct sandbox *b, const struct failure *f)
{
	struct sandboxes *s = arg;

	if (!f || !b)
		return;
	log_line(LOG_WARN, "cannot end an expired sandbox, retrying", LOG_S("box", b->id),
		 LOG_S("err", f->message));
	b->expires_us = sandboxes_now_us() + 1000000;
	expiry_update(s->expiry, b);
}

static void expired(void *arg, struct sandbox *b)
{
	struct sandboxes *s = arg;

	memcpy(s->expired[s->expired_n++ % SANDBOXES_EXPIRED], b->id, sizeof(b->id));
	log_line(LOG_INFO, "a sandbox has expired", LOG_S("box", b->id));
	sandboxes_delete(s, b, expired_deleted, s);
}

/* ---- loading ---- */

/* An operation that was under way when the server was killed never happened. */
static enum sandbox_state state_of(const char *name)
{
	static const enum sandbox_state before[SANDBOX_STATES_] = {
		[SANDBOX_PENDING] = SANDBOX_PENDING,	   [SANDBOX_RUNNING] = SANDBOX_RUNNING,
		[SANDBOX_PAUSING] = SANDBOX_RUNNING,	   [SANDBOX_PAUSED] = SANDBOX_PAUSED,
		[SANDBOX_RESUMING] = SANDBOX_PAUSED,	   [SANDBOX_STOPPING] = SANDBOX_RUNNING,
		[SANDBOX_TERMINATED] = SANDBOX_TERMINATED, [SANDBOX_FAILED] = SANDBOX_FAILED,
	};

	for (int i = 0; i < SANDBOX_STATES_; i++)
		if (strcmp(sandbox_state_name((enum sandbox_state)i), name) == 0)
			return before[i];
	return SANDBOX_FAILED;
}

static int load_one(void *arg, const struct store_sandbox *record)
{
	struct sandboxes *s = arg;
	struct sandbox *b = sandbox_new();
	struct err e = ERR_NONE;

	if (sandbox_spec_parse(view_of(record->spec), &b->spec, &e) < 0 ||
	    strlen(record->id) >= sizeof(b->id) || strlen(record->token) >= sizeof(b->token)) {
		log_line(LOG_ERROR, "ignoring a malformed record", LOG_S("box", record->id),
			 LOG_S("err", e.msg));
		sandbox_free(b);
		return 0;
	}
	memcpy(b->id, record->id, strlen(record->id) + 1);
	memcpy(b->token, record->token, strlen(record->token) + 1);
	b->state = state_of(record->state);
	b->unmatched = true;
	b->reason = sandbox_reason(record->reason);
	b->message = record->message ? mem_strdup(record->message) : NULL;
	b->created_us = record->created_us;
	b->changed_us = record->changed_us;
	b->expires_us = record->expires_us;
	b->handle = (struct runtime_handle){record->pid, record->start_time};
	b->spec_text = mem_strdup(record->spec);
	if (!b->spec.network.token) /* a record of before there were any */
		free(take_ptr(b->spec_text));
	sandbox_need_network_token(b);
	list_push_front(&s->all, &b->link);
	map_put(s->by_id, view_of(b->id), b);
	expiry_update(s->expiry, b);
	if (b->spec.root.layers_n) {
		images_use(s->images, &b->spec.root);
		b->counted = true;
	}
	return 0;
}

int sandboxes_new(struct loop *l, const struct config *config, struct store *store,
		  struct images *images, struct pulls *pulls, struct sandboxes **ret, struct err *e)
{
	struct sandboxes *s = mem_new(struct sandboxes);
	int r;

	s->loop = l;
	s->config = config;
	s->store = store;
	s->images = images;
	s->pulls = pulls;
	s->by_id = map_new();
	list_init(&s->all);
	list_init(&s->freezes);
	s->expiry = expiry_new(l, expired, s);
	r = store_each_sandbox(store, load_one, s, e);
	if (r < 0) {
		sandboxes_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void sandboxes_set_runtime(struct sandboxes *s, struct runtime *r)
{
	s->runtime = r;
}

void sandboxes_set_volumes(struct sandboxes *s, struct volumes *v)
{
	s->volumes = v;
	list_each_safe (it, next, &s->all)
		volumes_hold(v, &list_entry(it, struct sandbox, link)->spec.volumes);
}

void sandboxes_free(struct sandboxes *s)
{
	if (!s)
		return;
	list_each_safe (it, next, &s->all) {
		struct sandbox *b = list_entry(it, struct sandbox, link);

		pending_cancel(b);
		expiry_remove(s->expiry, b);
		sandboxes_forget_waiting(b);
		sandbox_free(b);
	}
	sandboxes_forget_freezes(s);
	expiry_free(s->expiry);
	map_free(s->by_id);
	free(s);
}
