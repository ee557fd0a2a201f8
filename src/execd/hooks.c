/*
 * execd/hooks.c - each hook is a small machine of four states; the table below is all of it.
 */
#include "execd/hooks.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/cron.h"
#include "codec/json.h"
#include "execd/app.h"
#include "execd/entry_log.h"
#include "execd/env.h"
#include "execd/process.h"
#include "net/loop.h"

#define TIMEOUT_DEFAULT_S     60
#define PRE_START_TIMEOUT_MAX 10800
#define PERIODIC_TIMEOUT_MAX  300
#define PERIODIC_MAX	      64
#define COMMAND_MAX	      4096
#define KILL_WAIT_MS	      10000
#define SLEEP_MAX_MS	      3600000 /* then the wall clock is looked at again */

enum hook_state { HOOK_IDLE, HOOK_RUNNING, HOOK_KILLED, HOOK_DISABLED, HOOK_STATES_ };
enum hook_event { HOOK_DUE, HOOK_EXITED, HOOK_LATE, HOOK_EVENTS_ };

struct hook {
	struct hooks *hooks;
	char *name;
	struct strv argv;
	int64_t timeout_s;
	struct cron schedule;
	int64_t due_ms; /* wall clock */
	bool pre_start; /* instead of a schedule */
	enum hook_state state;
	int status; /* of the last run, as of waitpid(2) */
	struct process *process;
	struct loop_timer *due, *deadline;
	struct entry_stream *out; /* one for all runs: what a run left behind may go on writing */
	int out_fd;
};

struct hooks {
	struct app *app;
	struct hook *pre_start; /* the first of `all`, or NULL */
	struct hook *all;
	size_t n;
	hooks_ready_fn *ready;
	void *arg;
};

typedef void hook_fn(struct hook *k);

static hook_fn run, skip, finish, kill_it, finish_late, disable, bury;

static hook_fn *const machine[HOOK_STATES_][HOOK_EVENTS_] = {
	[HOOK_IDLE] = {[HOOK_DUE] = run},
	[HOOK_RUNNING] = {[HOOK_DUE] = skip, [HOOK_EXITED] = finish, [HOOK_LATE] = kill_it},
	[HOOK_KILLED] = {[HOOK_DUE] = skip, [HOOK_EXITED] = finish_late, [HOOK_LATE] = disable},
	[HOOK_DISABLED] = {[HOOK_EXITED] = bury},
};

static void happens(struct hook *k, enum hook_event event)
{
	if (machine[k->state][event])
		machine[k->state][event](k);
}

static void say(struct hook *k, const char *what)
{
	log_line(LOG_WARN, what, LOG_S("hook", k->name));
	entry_log_say(k->hooks->app->entry_log, "hook %s: %s", k->name, what);
}

/* The answer that the entrypoint waits for; once. */
static void answer(struct hook *k, const char *failure)
{
	hooks_ready_fn *ready = take_ptr(k->hooks->ready);

	if (k->pre_start && ready)
		ready(k->hooks->arg, failure);
}

static void on_exited(void *arg, int status)
{
	struct hook *k = arg;

	k->status = status;
	happens(k, HOOK_EXITED);
}

static int open_output(struct hook *k, struct err *e)
{
	osb_cleanup(mem_freep) char *source = NULL;

	if (!k->hooks->app->entry_log || k->out)
		return 0;
	source = mem_printf("hook:%s", k->name);
	return entry_stream_new(k->hooks->app->entry_log, source, &k->out, &k->out_fd, e);
}

static int start(struct hook *k, struct err *e)
{
	osb_cleanup(strv_done) struct strv env = STRV_INIT;
	struct app *app = k->hooks->app;
	struct spawn spec = {
		.argv = strv_args(&k->argv),
		.fds = {-1, -1, -1},
	};
	int r;

	r = open_output(k, e);
	if (r == 0)
		r = env_for_command(app, NULL, &env, e);
	if (r < 0)
		return r;
	spec.env = strv_args(&env);
	spec.search_path = strv_env_get(&env, VIEW("PATH"));
	spec.fds[1] = spec.fds[2] = k->out_fd;
	return process_start(app, &spec, on_exited, k, &k->process, e);
}

/* ---- what the machine does ---- */

static void run(struct hook *k)
{
	struct err e = ERR_NONE;

	if (start(k, &e) < 0) {
		say(k, e.msg);
		answer(k, e.msg);
		return;
	}
	k->state = HOOK_RUNNING;
	loop_timer_start(k->deadline, (uint64_t)k->timeout_s * 1000);
}

static void skip(struct hook *k)
{
	say(k, "left out: it still runs");
}

static void bury(struct hook *k)
{
	loop_timer_stop(k->deadline);
	process_free(take_ptr(k->process));
	entry_stream_drain(k->out);
}

static void finish(struct hook *k)
{
	char how[64], text[128];

	bury(k);
	k->state = HOOK_IDLE;
	if (k->status == 0) {
		answer(k, NULL);
		return;
	}
	say(k, process_describe(k->status, how));
	snprintf(text, sizeof(text), "the preStart hook failed: %s", how);
	answer(k, text);
}

static void kill_it(struct hook *k)
{
	char text[128];

	k->state = HOOK_KILLED;
	loop_timer_start(k->deadline, KILL_WAIT_MS);
	process_signal(k->process, SIGKILL, /* group= */ true);
	entry_stream_drain(k->out);
	say(k, "killed: it took too long");
	snprintf(text, sizeof(text), "the preStart hook did not end within %lld s",
		 (long long)k->timeout_s);
	answer(k, text);
}

static void finish_late(struct hook *k)
{
	bury(k);
	k->state = HOOK_IDLE;
}

static void disable(struct hook *k)
{
	k->state = HOOK_DISABLED;
	loop_timer_stop(k->due);
	say(k, "disabled: it does not die");
}

/* ---- when it does it ---- */

/* Timers run by another clock than schedules: long waits are cut into several. */
static void sleep_until_due(struct hook *k)
{
	int64_t wait_ms = k->due_ms - (int64_t)clock_wall_ms();

	loop_timer_start(k->due, (uint64_t)MAX(MIN(wait_ms, SLEEP_MAX_MS), 0));
}

static void set_due(struct hook *k)
{
	int64_t now_ms = (int64_t)clock_wall_ms();

	if (k->schedule.every_s > 0) {
		loop_timer_start(k->due, k->schedule.every_s * 1000);
		return;
	}
	k->due_ms = cron_next(&k->schedule, now_ms / 1000) * 1000;
	if (k->due_ms > 0)
		sleep_until_due(k);
}

static void on_due(void *arg)
{
	struct hook *k = arg;

	if (k->schedule.every_s == 0 && (int64_t)clock_wall_ms() < k->due_ms) {
		sleep_until_due(k);
		return;
	}
	set_due(k);
	happens(k, HOOK_DUE);
}

static void on_deadline(void *arg)
{
	happens(arg, HOOK_LATE);
}

void hooks_run_pre_start(struct hooks *h, hooks_ready_fn *ready, void *arg)
{
	if (!h->pre_start) {
		ready(arg, NULL);
		return;
	}
	h->ready = ready;
	h->arg = arg;
	happens(h->pre_start, HOOK_DUE);
}

void hooks_run_periodic(struct hooks *h)
{
	for (size_t i = 0; i < h->n; i++)
		if (!h->all[i].pre_start)
			set_due(&h->all[i]);
}

/* ---- made from JSON ---- */

static int read_command(const struct json *v, int64_t timeout_max, struct hook *ret, struct err *e)
{
	const struct json *words = NULL;
	struct view word;

	ret->timeout_s = TIMEOUT_DEFAULT_S;
	if (json_field_array(v, "command", &words, e) < 0 ||
	    json_field_int(v, "timeoutSeconds", 1, timeout_max, &ret->timeout_s, e) < 0)
		return e->code;
	if (json_len(words) == 0 || json_len(words) > COMMAND_MAX)
		return err_set(e, -EINVAL, "a hook has 1 to %d words of command", COMMAND_MAX);
	for (size_t i = 0; i < json_len(words); i++) {
		if (!json_str(json_at(words, i), &word) || view_has(word, '\0'))
			return err_set(e, -EINVAL, "a hook's command has strings without NULs");
		strv_add_view(&ret->argv, word);
	}
	return 0;
}

static int read_periodic(const struct json *v, struct hook *ret, struct err *e)
{
	struct view name = VIEW_NONE, schedule = VIEW_NONE;

	if (json_field_string(v, "name", &name, e) < 0 ||
	    json_field_string(v, "schedule", &schedule, e) < 0 ||
	    cron_parse(schedule, &ret->schedule, e) < 0 ||
	    read_command(v, PERIODIC_TIMEOUT_MAX, ret, e) < 0)
		return e->code;
	ret->name = mem_strndup(name.p, name.len);
	return 0;
}

static struct hook *add(struct hooks *h)
{
	struct hook *k = &h->all[h->n++];

	k->hooks = h;
	k->out_fd = -1;
	k->due = loop_timer_new(h->app->loop, on_due, k);
	k->deadline = loop_timer_new(h->app->loop, on_deadline, k);
	return k;
}

static int read_all(struct hooks *h, const struct json *lifecycle, struct err *e)
{
	const struct json *pre_start = NULL, *periodic = NULL;

	if (json_field_object(lifecycle, "preStart", &pre_start, e) < 0 ||
	    json_field_array(lifecycle, "periodic", &periodic, e) < 0)
		return e->code;
	if (json_len(periodic) > PERIODIC_MAX)
		return err_set(e, -E2BIG, "more than %d periodic hooks", PERIODIC_MAX);
	h->all = mem_new_array(struct hook, json_len(periodic) + 1);
	if (pre_start) {
		h->pre_start = add(h);
		h->pre_start->pre_start = true;
		h->pre_start->name = mem_strdup("preStart");
		if (read_command(pre_start, PRE_START_TIMEOUT_MAX, h->pre_start, e) < 0)
			return err_ctx(e, "preStart");
	}
	for (size_t i = 0; i < json_len(periodic); i++)
		if (read_periodic(json_at(periodic, i), add(h), e) < 0)
			return err_ctx(e, "periodic[%zu]", i);
	return 0;
}

int hooks_new(struct app *app, const struct json *lifecycle, struct hooks **ret, struct err *e)
{
	struct hooks *h = mem_new(struct hooks);
	int r;

	h->app = app;
	r = read_all(h, lifecycle, e);
	if (r < 0) {
		hooks_free(h);
		return err_ctx(e, "lifecycle");
	}
	*ret = h;
	return 0;
}

void hooks_free(struct hooks *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n; i++) {
		struct hook *k = &h->all[i];

		process_free(k->process);
		loop_timer_free(k->due);
		loop_timer_free(k->deadline);
		entry_stream_drain(k->out);
		entry_stream_free(k->out);
		fd_close(k->out_fd);
		free(k->name);
		strv_done(&k->argv);
	}
	free(h->all);
	free(h);
}
