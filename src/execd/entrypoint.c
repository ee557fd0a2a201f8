/*
 * execd/entrypoint.c - starts the program and records how it ended.
 */
#include "execd/entrypoint.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "execd/app.h"
#include "execd/entry_log.h"
#include "execd/exit_record.h"
#include "execd/options.h"
#include "execd/process.h"

struct entrypoint {
	struct app *app;
	struct process *process;
	struct entry_stream *out, *err; /* NULL without a log */
	entrypoint_ended_fn *ended;
	void *arg;
	uint64_t started_ns;
};

static void on_exit_status(void *arg, int status)
{
	struct entrypoint *p = arg;
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	struct exit_record record = {
		.started_ns = p->started_ns,
		.exit_code = code,
		.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
	};
	char text[64];

	log_line(LOG_INFO, "entrypoint ended", LOG_S("how", process_describe(status, text)));
	entry_stream_drain(p->out);
	entry_stream_drain(p->err);
	exit_record_write(p->app->options, &record);
	p->ended(p->arg, code);
}

static int start(struct entrypoint *p, struct err *e)
{
	struct app *app = p->app;
	osb_cleanup(fd_closep) int out = -1, err = -1;
	struct spawn spec = {
		.search_path = strv_env_get(&app->env, VIEW("PATH")),
		.argv = app->options->entrypoint,
		.env = strv_args(&app->env),
		.fds = {0, 1, 2},
		.flags = SPAWN_FOREGROUND,
	};
	int r = 0;

	if (app->entry_log) {
		r = entry_stream_new(app->entry_log, "stdout", &p->out, &out, e);
		if (r == 0)
			r = entry_stream_new(app->entry_log, "stderr", &p->err, &err, e);
		spec.fds[1] = out;
		spec.fds[2] = err;
	}
	if (r == 0)
		r = process_start(app, &spec, on_exit_status, p, &p->process, e);
	return r;
}

int entrypoint_start(struct app *app, entrypoint_ended_fn *ended, void *arg,
		     struct entrypoint **ret, int *ret_code, struct err *e)
{
	struct entrypoint *p = mem_new(struct entrypoint);
	struct exit_record record = {0};
	int r;

	p->app = app;
	p->ended = ended;
	p->arg = arg;
	p->started_ns = clock_wall_ns();
	r = start(p, e);
	if (r < 0) {
		*ret_code = r == -ENOENT || r == -ENOTDIR ? 127 : 126;
		entry_log_say(app->entry_log, "the entrypoint was not started: %s", e->msg);
		record.started_ns = p->started_ns;
		record.exit_code = *ret_code;
		record.error = e->msg;
		exit_record_write(app->options, &record);
		entrypoint_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void entrypoint_signal(struct entrypoint *p, int signum)
{
	process_signal(p->process, signum, /* group= */ false);
}

void entrypoint_free(struct entrypoint *p)
{
	if (!p)
		return;
	entry_stream_free(p->out);
	entry_stream_free(p->err);
	process_free(p->process);
	free(p);
}
