/*
 * execd/entrypoint.c - starts the program and records how it ended.
 */
#include "execd/entrypoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/json_writer.h"
#include "codec/rfc3339.h"
#include "execd/app.h"
#include "execd/options.h"
#include "execd/process.h"

#define STATUS_MAX 4096

struct entrypoint {
	struct app *app;
	struct process *process;
	entrypoint_ended_fn *ended;
	void *arg;
	uint64_t started_ns;
};

static int write_file(const char *path, struct view text, struct err *e)
{
	osb_cleanup(mem_freep) char *temporary = mem_printf("%s.new", path);
	osb_cleanup(fd_closep) int fd = -1;

	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_set(e, -errno, "open '%s': %m", temporary);
	if (write(fd, text.p, text.len) != (ssize_t)text.len || fsync(fd) < 0)
		return err_set(e, -EIO, "write '%s': %m", temporary);
	if (rename(temporary, path) < 0)
		return err_set(e, -errno, "rename '%s': %m", temporary);
	return 0;
}

static void put_time(struct json_writer *w, const char *key, uint64_t ns)
{
	char text[RFC3339_MAX];

	rfc3339_format((int64_t)ns, text);
	json_put_cstr(w, key, text);
}

/* `status` as of waitpid(2), or -1 with an `error` when it never ran. */
static void record(struct app *app, uint64_t started_ns, int code, int status, const char *error)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(STATUS_MAX);
	struct err e = ERR_NONE;
	struct json_writer w;

	if (!app->options->status_file)
		return;
	json_writer_init(&w, &text);
	json_write_object(&w);
	json_put_int(&w, "exit_code", code);
	if (status >= 0 && WIFSIGNALED(status))
		json_put_int(&w, "signal", WTERMSIG(status));
	if (error)
		json_put_cstr(&w, "error", error);
	put_time(&w, "started_at", started_ns);
	put_time(&w, "finished_at", clock_wall_ns());
	json_write_object_end(&w);
	if (json_writer_end(&w) < 0 || buf_append_char(&text, '\n') < 0)
		return;
	if (write_file(app->options->status_file, buf_view(&text), &e) < 0)
		log_line(LOG_ERROR, "exit status not recorded", LOG_S("err", e.msg));
}

static void on_exit_status(void *arg, int status)
{
	struct entrypoint *p = arg;
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	char text[64];

	log_line(LOG_INFO, "entrypoint ended", LOG_S("how", process_describe(status, text)));
	record(p->app, p->started_ns, code, status, NULL);
	p->ended(p->arg, code);
}

int entrypoint_start(struct app *app, entrypoint_ended_fn *ended, void *arg,
		     struct entrypoint **ret, int *ret_code, struct err *e)
{
	struct entrypoint *p = mem_new(struct entrypoint);
	struct spawn spec = {
		.search_path = strv_env_get(&app->env, VIEW("PATH")),
		.argv = app->options->entrypoint,
		.env = strv_args(&app->env),
		.fds = {0, 1, 2},
		.flags = SPAWN_FOREGROUND,
	};
	int r;

	p->app = app;
	p->ended = ended;
	p->arg = arg;
	p->started_ns = clock_wall_ns();
	r = process_start(app, &spec, on_exit_status, p, &p->process, e);
	if (r < 0) {
		*ret_code = r == -ENOENT || r == -ENOTDIR ? 127 : 126;
		record(app, p->started_ns, *ret_code, -1, e->msg);
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
	process_free(p->process);
	free(p);
}
