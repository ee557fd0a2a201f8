/*
 * execd/code_spawn.c - see code_spawn.h.
 */
#include "execd/code_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/strv.h"
#include "execd/code_languages.h"
#include "sys/memfd.h"

#define CHANNEL_FD	"3"
#define FIRST_FILE_PATH "/proc/self/fd/4"
#define SHELL		"/bin/sh"

/* What the child gets, and our ends of it. */
struct ends {
	int pair[2];
	int pipes[2][2];
	int files[CODE_FILES_MAX];
	size_t files_n;
};

static void ends_close(struct ends *s)
{
	for (size_t i = 0; i < 2; i++) {
		fd_close(s->pair[i]);
		fd_close(s->pipes[i][0]);
		fd_close(s->pipes[i][1]);
	}
	for (size_t i = 0; i < s->files_n; i++)
		fd_close(s->files[i]);
}

static int open_files(struct ends *s, const struct code_language *l, struct err *e)
{
	for (size_t i = 0; l->files[i]; i++) {
		osb_cleanup(mem_freep) char *text = NULL;
		size_t len;
		int r;

		text = code_driver_text(l->files[i], &len);
		r = memfd_of(l->files[i], view_mem(text, len), &s->files[i], e);
		if (r < 0)
			return r;
		s->files_n++;
		/* It was written from the beginning, and is to be read from there. */
		(void)lseek(s->files[i], 0, SEEK_SET);
	}
	return 0;
}

static int open_ends(struct ends *s, const struct code_language *l, struct err *e)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->pair) < 0)
		return err_set(e, -errno, "socketpair: %m");
	for (size_t i = 0; i < 2; i++)
		if (pipe2(s->pipes[i], O_CLOEXEC) < 0)
			return err_set(e, -errno, "pipe: %m");
	/* A shell gets everything over its standard input. */
	return l->flags & CODE_SHELL ? 0 : open_files(s, l, e);
}

static void put_args(const struct code_language *l, const char *program, struct strv *ret)
{
	if (l->script) {
		strv_add(ret, SHELL);
		strv_add(ret, "-c");
		strv_add(ret, l->script);
	}
	strv_add(ret, program);
	for (size_t i = 0; l->args && l->args[i]; i++) {
		size_t len;

		if (strcmp(l->args[i], "{driver}") == 0)
			strv_add(ret, FIRST_FILE_PATH);
		else if (strcmp(l->args[i], "{text}") == 0)
			strv_take(ret, code_driver_text(l->files[0], &len));
		else if (strcmp(l->args[i], "{program}") == 0)
			strv_add(ret, program);
		else
			strv_add(ret, l->args[i]);
	}
}

static int start(struct app *app, const struct code_language *l, const char *program,
		 const char *cwd, const struct strv *env, const struct ends *s,
		 process_exit_fn *exited, void *arg, struct process **ret, struct err *e)
{
	int extra[1 + CODE_FILES_MAX] = {s->pair[1]};
	bool is_shell = l->flags & CODE_SHELL;
	struct strv args = STRV_INIT;
	int r;

	memcpy(extra + 1, s->files, s->files_n * sizeof(int));
	put_args(l, program, &args);
	r = process_start(
		app,
		&(struct spawn){
			.path = l->script ? SHELL : program,
			.argv = strv_args(&args),
			.env = strv_args(env),
			.cwd = cwd,
			.fds = {is_shell ? s->pair[1] : -1, s->pipes[0][1], s->pipes[1][1]},
			.extra_fds = extra,
			.extra_fds_n = is_shell ? 0 : 1 + s->files_n,
		},
		exited, arg, ret, e);
	strv_done(&args);
	return r;
}

int code_spawn(struct app *app, const struct code_language *l, const char *cwd, struct strv *env,
	       process_exit_fn *exited, void *arg, struct code_spawned *ret, struct err *e)
{
	osb_cleanup(ends_close) struct ends s = {{-1, -1}, {{-1, -1}, {-1, -1}}, {0}, 0};
	osb_cleanup(mem_freep) char *program = NULL;

	if (code_language_program(l, env, &program, e) < 0 || open_ends(&s, l, e) < 0)
		return e->code;
	if (!(l->flags & CODE_SHELL))
		strv_env_set(env, VIEW("OPENSANDBOX_DRIVER_FD"), VIEW(CHANNEL_FD));
	if (start(app, l, program, cwd, env, &s, exited, arg, &ret->process, e) < 0)
		return err_ctx(e, "start %s", program);
	ret->channel = take_fd(s.pair[0]);
	ret->pipes[0] = take_fd(s.pipes[0][0]);
	ret->pipes[1] = take_fd(s.pipes[1][0]);
	return 0;
}
