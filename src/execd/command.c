/*
 * execd/command.c - the life of a command.
 *
 * A `struct command` is the record that a status reads: small, kept after the end.  Its `struct
 * run` is what only a running command needs: process, pipes, stream, timer.  A run is over when its
 * process has ended and its stream was closed (or the client left).
 */
#include "execd/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rand.h"
#include "codec/events.h"
#include "execd/app.h"
#include "execd/command_log.h"
#include "execd/errors.h"
#include "execd/find_shell.h"
#include "execd/options.h"
#include "execd/output.h"
#include "execd/process.h"
#include "net/event_stream.h"
#include "net/http_server.h"
#include "net/loop.h"

#define ERROR_NAME	 "CommandExecError"
#define EXIT_NOT_STARTED 255
#define EVENT_MAX	 4096 /* of the events that we make ourselves */
#define HOUR_MS		 (3600ULL * 1000)

const struct command_limits command_limits_default = {
	.keep_ms = 24 * HOUR_MS,
	.finished_n = 100000,
	.finished_bytes = (size_t)64 * 1024 * 1024,
	.running_n = 4096,
	.interrupt_ms = 3000,
};

struct commands {
	struct app *app;
	struct command_limits limits;
	struct command_logs *logs;
	struct map *by_id;
	struct list running;
	struct list finished; /* oldest end first */
	size_t running_n;
	size_t finished_n;
	size_t finished_bytes;
	struct loop_timer *forget; /* at the end of the oldest one's time */
};

struct run {
	struct command *command;
	struct process *process;
	struct event_stream *stream; /* NULL: no client */
	struct output *outputs[2];
	struct loop_timer *timeout;
	uint64_t started_us;
	uint64_t took_ms;
	int status;    /* as of waitpid(2) */
	unsigned open; /* outputs that have not ended, and whoever is going through them */
	bool was_cut;  /* timed out or interrupted by us */
};

struct command {
	struct list link; /* in running or finished */
	struct commands *owner;
	struct run *run; /* NULL when over */
	char id[RAND_HEX_LEN + 1];
	char *content;
	size_t content_len;
	char *error; /* NULL: none */
	uint64_t started_ns;
	uint64_t finished_ns; /* 0: it runs */
	uint64_t finished_us; /* monotonic */
	struct list waiters;  /* for its end */
	int exit_code;
	int log_fd; /* background: open while it runs, or as long as the log is in memory */
	bool background;
	bool log_in_memory;
};

struct waiter {
	struct list link;
	struct http_exchange *exchange;
};

/* ---- the record ---- */

static struct command *command_new(struct commands *cs, const struct command_spec *spec)
{
	struct command *c = mem_new(struct command);

	rand_hex(c->id);
	c->owner = cs;
	c->content = mem_strndup(spec->content.p, spec->content.len);
	c->content_len = spec->content.len;
	c->started_ns = clock_wall_ns();
	c->background = spec->background;
	c->log_fd = -1;
	list_init(&c->waiters);
	list_push_back(&cs->running, &c->link);
	cs->running_n++;
	map_put(cs->by_id, view_of(c->id), c);
	return c;
}

static size_t cost_of(const struct command *c)
{
	/* The map's entry and the allocator's own bytes are about as large as the id and the links.
	 */
	return 2 * sizeof(*c) + c->content_len + (c->log_in_memory ? COMMAND_LOG_MEMORY_MAX : 0);
}

static void command_free(struct command *c)
{
	if (c->background)
		command_logs_remove(c->owner->logs, c->id);
	fd_close(c->log_fd);
	free(c->content);
	free(c->error);
	free(c);
}

static void forget_oldest(struct commands *cs)
{
	struct command *c = list_entry(cs->finished.next, struct command, link);

	list_remove(&c->link);
	cs->finished_n--;
	cs->finished_bytes -= cost_of(c);
	map_remove(cs->by_id, view_of(c->id));
	command_free(c);
}

/* No clock ticks while nothing is due: the timer is set for the oldest record alone. */
static void forget_old(void *arg)
{
	struct commands *cs = arg;
	uint64_t now_us = clock_mono_us();

	while (!list_empty(&cs->finished)) {
		struct command *c = list_entry(cs->finished.next, struct command, link);
		uint64_t age_ms = (now_us - c->finished_us) / 1000;

		if (age_ms < cs->limits.keep_ms && cs->finished_n <= cs->limits.finished_n &&
		    cs->finished_bytes <= cs->limits.finished_bytes) {
			if (!loop_timer_active(cs->forget))
				loop_timer_start(cs->forget, cs->limits.keep_ms - age_ms + 1);
			return;
		}
		forget_oldest(cs);
	}
}

static void answer_waiters(struct command *c)
{
	list_each_safe (it, next, &c->waiters) {
		struct waiter *w = list_entry(it, struct waiter, link);

		list_remove(&w->link);
		reply_empty(w->exchange);
		free(w);
	}
}

/* It has ended, or never began: from now on the record is history. */
static void command_finished(struct command *c, int exit_code, const char *error)
{
	struct commands *cs = c->owner;

	c->finished_ns = clock_wall_ns();
	c->finished_us = clock_mono_us();
	c->exit_code = exit_code;
	c->error = error ? mem_strdup(error) : NULL;
	if (!c->log_in_memory)
		c->log_fd = fd_close(c->log_fd);
	list_remove(&c->link);
	list_push_back(&cs->finished, &c->link);
	cs->running_n--;
	cs->finished_n++;
	cs->finished_bytes += cost_of(c);
	answer_waiters(c);
	forget_old(cs);
}

/* ---- the run ---- */

static void run_free(struct run *r)
{
	if (r->command)
		r->command->run = NULL;
	output_free(r->outputs[0]);
	output_free(r->outputs[1]);
	loop_timer_free(r->timeout);
	process_free(r->process);
	free(r);
}

static void send_events(struct run *r, const struct buf *events)
{
	if (r->stream)
		(void)event_stream_send(r->stream, buf_view(events));
}

static void close_stream(struct run *r)
{
	if (r->stream)
		event_stream_end(r->stream);
	r->stream = NULL;
}

static void send_init(struct run *r)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(EVENT_MAX);

	if (events_text(&b, "init", view_of(r->command->id), clock_wall_ms()) == 0)
		send_events(r, &b);
}

static void send_complete(struct run *r)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(EVENT_MAX);

	if (events_complete(&b, r->took_ms, clock_wall_ms()) == 0)
		send_events(r, &b);
}

static void send_error(struct run *r, const char *value, const char *traceback)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(EVENT_MAX);

	if (events_error(&b, ERROR_NAME, view_of(value), view_of(traceback), clock_wall_ms()) == 0)
		send_events(r, &b);
}

static int exit_code_of(const struct run *r)
{
	return r->was_cut ? -1 : process_exit_code(r->status);
}

/* How it ended, in words; a trap may have turned our signal into an exit status. */
static const char *describe(const struct run *r, char ret[96])
{
	char text[64];

	process_describe(r->status, text);
	snprintf(ret, 96, r->was_cut && WIFEXITED(r->status) ? "interrupted, then %s" : "%s", text);
	return ret;
}

static void run_over(struct run *r)
{
	char value[16], text[96];
	int code = exit_code_of(r);

	if (code == 0) {
		send_complete(r);
	} else {
		snprintf(value, sizeof(value), "%d", code);
		send_error(r, value, describe(r, text));
	}
	close_stream(r);
	run_free(r);
}

/* Gives up one hold on a run: an output's, or that of a caller who goes through them. */
static void release(struct run *r)
{
	if (--r->open == 0)
		run_over(r);
}

static void on_output_ended(void *arg)
{
	release(arg);
}

static bool on_output(void *arg, struct view events)
{
	struct run *r = arg;

	return !r->stream || event_stream_send(r->stream, events);
}

static const struct output_events output_events = {on_output, on_output_ended};

static void on_drained(void *arg)
{
	struct run *r = arg;

	r->open++;
	for (size_t i = 0; i < ARRAY_LEN(r->outputs); i++)
		if (r->outputs[i])
			output_resume(r->outputs[i]);
	release(r);
}

static void on_gone(void *arg)
{
	struct run *r = arg;

	close_stream(r);
	r->open++;
	for (size_t i = 0; i < ARRAY_LEN(r->outputs); i++)
		if (r->outputs[i])
			output_drop(r->outputs[i]);
	release(r);
}

/* From here on the two go their own ways: the record may be forgotten before a slow client has read
 * the rest. */
static struct command *detach(struct run *r)
{
	struct command *c = r->command;

	c->run = NULL;
	r->command = NULL;
	return c;
}

static void on_exited(void *arg, int status)
{
	struct run *r = arg;
	char text[96];
	int code;

	r->status = status;
	r->took_ms = (clock_mono_us() - r->started_us) / 1000;
	if (r->timeout)
		loop_timer_stop(r->timeout);
	code = exit_code_of(r);
	command_finished(detach(r), code, code != 0 ? describe(r, text) : NULL);
	if (r->open == 0) {
		run_free(r);
		return;
	}
	output_end(r->outputs[0]);
	output_end(r->outputs[1]);
}

static void on_timeout(void *arg)
{
	struct run *r = arg;

	r->was_cut = true;
	process_signal(r->process, SIGKILL, /* group= */ true);
}

static void run_not_started(struct run *r, const struct err *e)
{
	send_error(r, e->msg, e->msg);
	command_finished(detach(r), EXIT_NOT_STARTED, e->msg);
	close_stream(r);
	run_free(r);
}

/* ---- starting ---- */

static int start_process(struct run *r, const struct command_spec *spec, const int fds[3],
			 struct err *e)
{
	struct commands *cs = r->command->owner;
	struct spawn s = {
		.path = spec->path,
		.search_path = spec->search_path,
		.argv = spec->argv,
		.env = spec->env,
		.cwd = spec->cwd,
		.fds = {fds[0], fds[1], fds[2]},
		.flags = spec->has_ids ? SPAWN_IDS : 0,
		.uid = spec->uid,
		.gid = spec->gid,
		.groups = spec->groups,
		.groups_n = spec->groups_n,
	};

	if (process_start(cs->app, &s, on_exited, r, &r->process, e) < 0)
		return e->code;
	if (spec->timeout_ms > 0) {
		r->timeout = loop_timer_new(cs->app->loop, on_timeout, r);
		loop_timer_start(r->timeout, spec->timeout_ms);
	}
	return 0;
}

static int start_foreground(struct run *r, const struct command_spec *spec, struct err *e)
{
	static const char *const types[] = {"stdout", "stderr"};
	struct app *app = r->command->owner->app;
	int pipes[2][2] = {{-1, -1}, {-1, -1}};
	int code = 0;

	for (size_t i = 0; i < 2 && code == 0; i++)
		if (pipe2(pipes[i], O_CLOEXEC) < 0)
			code = err_set(e, -errno, "pipe: %m");
	if (code == 0)
		code = start_process(r, spec, (int[3]){-1, pipes[0][1], pipes[1][1]}, e);
	for (size_t i = 0; i < 2; i++) {
		fd_close(pipes[i][1]);
		if (code < 0)
			fd_close(pipes[i][0]);
	}
	for (size_t i = 0; i < 2 && code == 0; i++) {
		code = output_new(app, pipes[i][0], types[i], &output_events, r, &r->outputs[i], e);
		if (code == 0)
			r->open++;
		else if (i == 0)
			fd_close(pipes[1][0]);
	}
	if (code < 0 && r->process)
		process_signal(r->process, SIGKILL, /* group= */ true);
	return code;
}

static int start_background(struct run *r, const struct command_spec *spec, struct err *e)
{
	struct command *c = r->command;

	if (command_logs_create(c->owner->logs, c->id, &c->log_fd, &c->log_in_memory, e) < 0)
		return e->code;
	return start_process(r, spec, (int[3]){-1, c->log_fd, c->log_fd}, e);
}

void commands_run(struct commands *cs, struct http_exchange *x, const struct command_spec *spec)
{
	struct err e = ERR_NONE;
	struct run *r;
	int code;

	if (cs->running_n >= cs->limits.running_n) {
		err_set(&e, -EAGAIN, "%zu commands run already", cs->running_n);
		reply_runtime_error(x, &e);
		return;
	}
	r = mem_new(struct run);
	r->command = command_new(cs, spec);
	r->command->run = r;
	r->started_us = clock_mono_us();
	r->stream = event_stream_new(cs->app->loop, x, EVENT_STREAM_PINGS, on_drained, on_gone, r);
	if (spec->impossible)
		code = err_set(&e, -ENOENT, "%s", spec->impossible);
	else if (spec->background)
		code = start_background(r, spec, &e);
	else
		code = start_foreground(r, spec, &e);
	send_init(r);
	if (code == -ENOENT)
		find_shell_forget(cs->app);
	if (code < 0) {
		run_not_started(r, &e);
	} else if (spec->background) {
		send_complete(r);
		close_stream(r);
	}
}

/* ---- asking ---- */

struct command *commands_find(struct commands *cs, struct view id)
{
	return map_get(cs->by_id, id);
}

void command_status(const struct command *c, struct command_status *ret)
{
	*ret = (struct command_status){
		.id = c->id,
		.content = {c->content, c->content_len},
		.background = c->background,
		.running = c->finished_ns == 0,
		.exit_code = c->exit_code,
		.error = c->error,
		.started_ns = c->started_ns,
		.finished_ns = c->finished_ns,
	};
}

static void on_waiter_gone(struct http_exchange *x, void *arg)
{
	struct waiter *w = arg;

	list_remove(&w->link);
	free(w);
}

int command_interrupt(struct command *c, struct http_exchange *x, struct err *e)
{
	struct waiter *w;

	if (!c->run || !c->run->process)
		return err_set(e, -ESRCH, "command '%s' does not run", c->id);
	w = mem_new(struct waiter);
	w->exchange = x;
	list_push_back(&c->waiters, &w->link);
	http_on_gone(x, on_waiter_gone, w);
	c->run->was_cut = true;
	process_terminate(c->run->process, c->owner->limits.interrupt_ms);
	return 0;
}

int command_log(struct command *c, int *ret_fd, uint64_t *ret_size, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;

	if (!c->background)
		return err_set(e, -EINVAL, "command '%s' did not run in the background", c->id);
	if (c->log_fd >= 0) {
		fd = fcntl(c->log_fd, F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return err_set(e, -errno, "open the log of '%s': %m", c->id);
	} else if (command_logs_open(c->owner->logs, c->id, &fd, e) < 0) {
		return e->code;
	}
	if (command_log_size(fd, c->log_in_memory, ret_size, e) < 0)
		return e->code;
	*ret_fd = take_fd(fd);
	return 0;
}

/* ---- all of them ---- */

struct commands *commands_new(struct app *app, const struct command_limits *limits)
{
	struct commands *cs = mem_new(struct commands);

	cs->app = app;
	cs->limits = *limits;
	cs->logs = command_logs_new(app->options->state_dir);
	cs->by_id = map_new();
	list_init(&cs->running);
	list_init(&cs->finished);
	cs->forget = loop_timer_new(app->loop, forget_old, cs);
	return cs;
}

void commands_free(struct commands *cs)
{
	if (!cs)
		return;
	list_each_safe (it, next, &cs->running) {
		struct command *c = list_entry(it, struct command, link);

		if (c->run)
			run_free(c->run);
		list_remove(&c->link);
		command_free(c);
	}
	while (!list_empty(&cs->finished))
		forget_oldest(cs);
	loop_timer_free(cs->forget);
	map_free(cs->by_id);
	command_logs_free(cs->logs);
	free(cs);
}
