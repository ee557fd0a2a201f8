/*
 * execd/command_run.c - a command while it runs.
 */
#include "execd/command_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "codec/events.h"
#include "execd/app.h"
#include "execd/command.h"
#include "execd/find_shell.h"
#include "execd/output.h"
#include "execd/process.h"
#include "net/event_stream.h"
#include "net/loop.h"

#define ERROR_NAME	 "CommandExecError"
#define EXIT_NOT_STARTED 255
#define EVENT_MAX	 4096 /* of the events that we make ourselves */

struct command_run {
	struct app *app;
	command_run_ended_fn *ended; /* NULL: was called */
	void *arg;
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

void command_run_free(struct command_run *r)
{
	output_free(r->outputs[0]);
	output_free(r->outputs[1]);
	loop_timer_free(r->timeout);
	process_free(r->process);
	free(r);
}

static void send_events(struct command_run *r, const struct buf *events)
{
	if (r->stream)
		(void)event_stream_send(r->stream, buf_view(events));
}

static void close_stream(struct command_run *r)
{
	if (r->stream)
		event_stream_end(r->stream);
	r->stream = NULL;
}

static void send_init(struct command_run *r, const char *id)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(EVENT_MAX);

	if (events_text(&b, "init", view_of(id), clock_wall_ms()) == 0)
		send_events(r, &b);
}

static void send_complete(struct command_run *r)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(EVENT_MAX);

	if (events_complete(&b, r->took_ms, clock_wall_ms()) == 0)
		send_events(r, &b);
}

static void send_error(struct command_run *r, const char *value, const char *traceback)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(EVENT_MAX);

	if (events_error(&b, ERROR_NAME, view_of(value), view_of(traceback), clock_wall_ms()) == 0)
		send_events(r, &b);
}

static int exit_code_of(const struct command_run *r)
{
	return r->was_cut ? -1 : process_exit_code(r->status);
}

/* How it ended, in words; a trap may have turned our signal into an exit status. */
static const char *describe(const struct command_run *r, char ret[96])
{
	char text[64];

	process_describe(r->status, text);
	snprintf(ret, 96, r->was_cut && WIFEXITED(r->status) ? "interrupted, then %s" : "%s", text);
	return ret;
}

static void run_over(struct command_run *r)
{
	char value[16], text[96];
	int code = exit_code_of(r);

	/* Sending may find that the client has left: that must not end the run a second time. */
	r->open++;
	if (code == 0) {
		send_complete(r);
	} else {
		snprintf(value, sizeof(value), "%d", code);
		send_error(r, value, describe(r, text));
	}
	close_stream(r);
	command_run_free(r);
}

/* Gives up one hold on a run: an output's, or that of a caller who goes through them. */
static void release(struct command_run *r)
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
	struct command_run *r = arg;

	return !r->stream || event_stream_send(r->stream, events);
}

static const struct output_events output_events = {on_output, on_output_ended};

static void on_drained(void *arg)
{
	struct command_run *r = arg;

	r->open++;
	for (size_t i = 0; i < ARRAY_LEN(r->outputs); i++)
		if (r->outputs[i])
			output_resume(r->outputs[i]);
	release(r);
}

static void on_gone(void *arg)
{
	struct command_run *r = arg;

	close_stream(r);
	r->open++;
	for (size_t i = 0; i < ARRAY_LEN(r->outputs); i++)
		if (r->outputs[i])
			output_drop(r->outputs[i]);
	release(r);
}

static void on_exited(void *arg, int status)
{
	struct command_run *r = arg;
	char text[96];
	int code;

	r->status = status;
	r->took_ms = (clock_mono_us() - r->started_us) / 1000;
	if (r->timeout)
		loop_timer_stop(r->timeout);
	code = exit_code_of(r);
	r->ended(r->arg, code, code != 0 ? describe(r, text) : NULL);
	if (r->open == 0) {
		command_run_free(r);
		return;
	}
	output_end(r->outputs[0]);
	output_end(r->outputs[1]);
}

static void on_timeout(void *arg)
{
	struct command_run *r = arg;

	r->was_cut = true;
	process_signal(r->process, SIGKILL, /* group= */ true);
}

static int start_process(struct command_run *r, const struct command_spec *spec, const int fds[3],
			 struct err *e)
{
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

	if (process_start(r->app, &s, on_exited, r, &r->process, e) < 0)
		return e->code;
	if (spec->timeout_ms > 0) {
		r->timeout = loop_timer_new(r->app->loop, on_timeout, r);
		loop_timer_start(r->timeout, spec->timeout_ms);
	}
	return 0;
}

static int start_foreground(struct command_run *r, const struct command_spec *spec, struct err *e)
{
	static const char *const types[] = {"stdout", "stderr"};
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
		code = output_new(r->app, pipes[i][0], types[i], &output_events, r, &r->outputs[i],
				  e);
		if (code == 0)
			r->open++;
		else if (i == 0)
			fd_close(pipes[1][0]);
	}
	if (code < 0 && r->process)
		process_signal(r->process, SIGKILL, /* group= */ true);
	return code;
}

static int start(struct command_run *r, const struct command_spec *spec, int log_fd, struct err *e)
{
	if (spec->impossible)
		return err_set(e, -ECANCELED, "%s", spec->impossible);
	if (spec->background)
		return start_process(r, spec, (int[3]){-1, log_fd, log_fd}, e);
	return start_foreground(r, spec, e);
}

struct command_run *command_run_start(struct app *app, struct http_exchange *x, const char *id,
				      const struct command_spec *spec, int log_fd,
				      command_run_ended_fn *ended, void *arg)
{
	struct command_run *r = mem_new(struct command_run);
	struct err e = ERR_NONE;
	int code;

	r->app = app;
	r->open = 1; /* ours, until it has begun */
	r->ended = ended;
	r->arg = arg;
	r->started_us = clock_mono_us();
	r->stream = event_stream_new(app->loop, x, EVENT_STREAM_PINGS, on_drained, on_gone, r);
	code = start(r, spec, log_fd, &e);
	send_init(r, id);
	if (code < 0) {
		if (code == -ENOENT)
			find_shell_forget(app);
		send_error(r, e.msg, e.msg);
		ended(arg, EXIT_NOT_STARTED, e.msg);
		close_stream(r);
		command_run_free(r);
		return NULL;
	}
	if (spec->background) {
		send_complete(r);
		close_stream(r);
	}
	r->open--;
	return r;
}

void command_run_interrupt(struct command_run *r, unsigned grace_ms)
{
	r->was_cut = true;
	process_terminate(r->process, grace_ms);
}
