/*
 * execd/isolated.c - the registry of isolated sessions.
 */
#include "execd/isolated.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "execd/app.h"
#include "execd/isolated_box.h"
#include "execd/isolated_config.h"
#include "execd/isolated_upper.h"
#include "execd/shell.h"
#include "execd/worker.h"
#include "net/loop.h"
#include "sys/caps.h"

struct isolated {
	struct app *app;
	struct isolated_config config;
	struct map *by_id;
	bool probed;
	struct isolated_probe probe;
};

static void run_free(struct isolated_run *r)
{
	isolated_shell_free(r->shell);
	loop_task_free(r->end);
	isolated_log_close(&r->log);
	free(r);
}

static int remove_upper(void *arg, int out_fd, struct err *e)
{
	return isolated_upper_remove(arg, e);
}

/* Deleting a tree takes long: nobody waits for it. */
static void discard_upper(struct app *app, char *dir)
{
	struct worker *w = NULL;
	struct err e = ERR_NONE;

	if (!dir)
		return;
	if (worker_start(app, remove_upper, dir, /* keep_fd= */ -1, NULL, NULL, NULL, &w, &e) < 0)
		log_line(LOG_WARN, "ignoring a session's upper directory", LOG_S("path", dir),
			 LOG_S("err", e.msg));
	free(dir);
}

static void session_free(struct isolated_session *s)
{
	struct app *app = s->owner->app;

	/* Runs that end now must not wind the clock again. */
	s->spec.idle_s = 0;
	while (s->runs) {
		struct isolated_run *r = s->runs;

		s->runs = r->next;
		run_free(r);
	}
	isolated_shell_free(s->shell);
	isolated_box_free(s->box);
	discard_upper(app, s->upper_dir);
	isolated_spec_done(&s->spec);
	loop_timer_free(s->idle);
	free(s);
}

int isolated_new(struct app *app, struct isolated **ret, struct err *e)
{
	struct isolated *i = mem_new(struct isolated);
	int r;

	i->app = app;
	i->by_id = map_new();
	r = isolated_config_load(&i->config, app->options, e);
	if (r < 0) {
		isolated_free(i);
		return r;
	}
	*ret = i;
	return 0;
}

void isolated_free(struct isolated *i)
{
	struct view key;
	void *value;
	size_t pos = 0;

	if (!i)
		return;
	/* Nobody is left to do anything in the background. */
	while (map_next(i->by_id, &pos, &key, &value)) {
		struct isolated_session *s = value;
		struct err e = ERR_NONE;

		isolated_box_kill(s->box);
		if (s->upper_dir)
			(void)!isolated_upper_remove(s->upper_dir, &e);
		free(take_ptr(s->upper_dir));
		session_free(s);
	}
	map_free(i->by_id);
	isolated_config_done(&i->config);
	free(i);
}

const struct isolated_probe *isolated_probe(struct isolated *i)
{
	struct isolated_probe *p = &i->probe;
	struct err plain = ERR_NONE, userns = ERR_NONE;

	if (i->probed)
		return p;
	i->probed = true;
	p->userns = isolated_box_probe(i->app, /* userns= */ true, &userns) == 0;
	p->available =
		caps_can_mount() ? isolated_box_probe(i->app, false, &plain) == 0 : p->userns;
	p->setpriv = p->available && caps_can_mount() && caps_can_change_user();
	if (!p->available)
		snprintf(p->message, sizeof(p->message), "namespaces cannot be made here: %s",
			 plain.code ? plain.msg : userns.msg);
	return p;
}

static void on_idle(void *arg)
{
	struct isolated_session *s = arg;

	log_line(LOG_INFO, "isolated session was idle for too long", LOG_S("session", s->id));
	isolated_delete(s->owner, s);
}

static void arm_idle(struct isolated_session *s)
{
	if (s->spec.idle_s == 0 || s->active > 0)
		return;
	s->idle_end_us = clock_mono_us() + (uint64_t)s->spec.idle_s * 1000000;
	loop_timer_start(s->idle, (uint64_t)s->spec.idle_s * 1000);
}

static void on_gone(void *arg)
{
	struct isolated_session *s = arg;

	log_line(LOG_WARN, "isolated session ended by itself", LOG_S("session", s->id));
}

/* On disk where an overlay can have its upper there, else in memory. */
static int make_box(struct isolated *i, struct isolated_session *s, struct err *e)
{
	struct isolated_place place = {.hidden_dir = i->config.upper_root,
				       .upper_max = i->config.upper_max};
	struct err first = ERR_NONE;
	int r;

	if (s->spec.mode == ISOLATED_OVERLAY &&
	    isolated_upper_make(i->config.upper_root, s->id, s->spec.workspace, &s->upper_dir,
				&first) == 0) {
		place.upper_dir = s->upper_dir;
		r = isolated_box_new(i->app, &s->spec, &place, on_gone, s, &s->box, &first);
		if (r == 0 || r == -EOPNOTSUPP) {
			*e = first;
			return r;
		}
		discard_upper(i->app, take_ptr(s->upper_dir));
		place.upper_dir = NULL;
	}
	return isolated_box_new(i->app, &s->spec, &place, on_gone, s, &s->box, e);
}

int isolated_create(struct isolated *i, struct view body, struct isolated_session **ret,
		    struct err *e)
{
	const struct isolated_probe *probe = isolated_probe(i);
	struct isolated_session *s;
	int r;

	if (!probe->available)
		return err_set(e, -EOPNOTSUPP, "%s", probe->message);
	if (map_len(i->by_id) >= ISOLATED_MAX_SESSIONS)
		return err_set(e, -EBUSY, "there are %d isolated sessions already",
			       ISOLATED_MAX_SESSIONS);
	s = mem_new(struct isolated_session);
	s->owner = i;
	rand_uuid(s->id);
	s->created_ns = clock_wall_ns();
	s->idle = loop_timer_new(i->app->loop, on_idle, s);
	r = isolated_spec_parse(&s->spec, body, e);
	if (r == 0)
		r = isolated_spec_resolve(&s->spec, i->app, &i->config.allowed_writable, e);
	/* Whatever is wrong with what was asked is the client's to mend. */
	if (r < 0)
		r = e->code = -EINVAL;
	if (r == 0 && s->spec.userns && !probe->userns)
		r = err_set(e, -EOPNOTSUPP, "uid_mode 'userns' is not available here");
	if (r == 0)
		r = make_box(i, s, e);
	if (r == 0)
		r = isolated_shell_new(s->box, &s->shell, e);
	if (r < 0) {
		session_free(s);
		return r;
	}
	map_put(i->by_id, view_of(s->id), s);
	arm_idle(s);
	*ret = s;
	return 0;
}

struct isolated_session *isolated_find(struct isolated *i, struct view id)
{
	return map_get(i->by_id, id);
}

void isolated_delete(struct isolated *i, struct isolated_session *s)
{
	(void)map_remove(i->by_id, view_of(s->id));
	session_free(s);
}

struct isolated_session *isolated_next(struct isolated *i, size_t *pos)
{
	struct view key;
	void *value;

	return map_next(i->by_id, pos, &key, &value) ? value : NULL;
}

bool isolated_alive(const struct isolated_session *s)
{
	return isolated_box_alive(s->box);
}

struct shell *isolated_shell(const struct isolated_session *s)
{
	return isolated_shell_of(s->shell);
}

int64_t isolated_idle_left_s(const struct isolated_session *s)
{
	uint64_t now = clock_mono_us();

	if (s->idle_end_us == 0)
		return -1;
	return s->idle_end_us > now ? (int64_t)((s->idle_end_us - now + 999999) / 1000000) : 0;
}

void isolated_begin(struct isolated_session *s)
{
	s->active++;
	s->idle_end_us = 0;
	s->last_run_ns = clock_wall_ns();
	loop_timer_stop(s->idle);
}

void isolated_end(struct isolated_session *s)
{
	s->active--;
	arm_idle(s);
}

static bool on_output(void *arg, struct view bytes)
{
	struct isolated_run *r = arg;

	isolated_log_write(&r->log, bytes);
	return true;
}

static void on_done(void *arg, const struct shell_end *end)
{
	struct isolated_run *r = arg;

	r->finished_ns = clock_wall_ns();
	r->exit_code = end->code;
	if (end->cause == SHELL_NOT_STARTED)
		r->error = "the shell could not be started";
	else if (!isolated_alive(r->session))
		r->error = "session terminated";
	loop_task_post(r->end);
	isolated_end(r->session);
}

/* Its shell was for this run alone. */
static void on_end(void *arg)
{
	struct isolated_run *r = arg;

	isolated_shell_free(r->shell);
	r->shell = NULL;
}

/* Room for one more: the oldest that has ended goes. */
static int make_room(struct isolated_session *s, struct err *e)
{
	struct isolated_run **oldest = NULL;
	size_t kept = 0, running = 0;

	for (struct isolated_run **at = &s->runs; *at; at = &(*at)->next) {
		kept++;
		if ((*at)->shell)
			running++;
		else
			oldest = at;
	}
	if (running >= ISOLATED_MAX_RUNS)
		return err_set(e, -EBUSY, "%d background runs are active already",
			       ISOLATED_MAX_RUNS);
	if (kept >= ISOLATED_KEPT_RUNS && oldest) {
		struct isolated_run *gone = *oldest;

		*oldest = gone->next;
		run_free(gone);
	}
	return 0;
}

int isolated_run_start(struct isolated_session *s, const struct shell_job *job,
		       struct isolated_run **ret, struct err *e)
{
	struct shell_job mine = *job;
	struct shell_run *started;
	struct isolated_run *r;
	int q = make_room(s, e);

	if (q < 0)
		return q;
	r = mem_new(struct isolated_run);
	r->session = s;
	r->log.fd = -1;
	rand_uuid(r->id);
	r->started_ns = clock_wall_ns();
	r->end = loop_task_new(s->owner->app->loop, on_end, r);
	mine.output = on_output;
	mine.done = on_done;
	mine.arg = r;
	q = isolated_log_open(&r->log, s->owner->app, e);
	if (q == 0)
		q = isolated_shell_new(s->box, &r->shell, e);
	if (q == 0) {
		shell_follow(isolated_shell_of(r->shell), isolated_shell(s));
		q = shell_submit(isolated_shell_of(r->shell), &mine, &started, e);
	}
	if (q < 0) {
		run_free(r);
		return q;
	}
	isolated_begin(s);
	r->next = s->runs;
	s->runs = r;
	*ret = r;
	return 0;
}

struct isolated_run *isolated_run_find(struct isolated_session *s, struct view id)
{
	for (struct isolated_run *r = s->runs; r; r = r->next)
		if (view_is(id, r->id))
			return r;
	return NULL;
}
