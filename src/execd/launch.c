/*
 * execd/launch.c - the steps of coming up, each started by the end of the one before.
 */
#include "execd/launch.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "execd/app.h"
#include "execd/code.h"
#include "execd/code_port.h"
#include "execd/entry_log.h"
#include "execd/entrypoint.h"
#include "execd/env.h"
#include "execd/exit_record.h"
#include "execd/file_root.h"
#include "execd/hooks.h"
#include "execd/identity.h"
#include "execd/listen.h"
#include "execd/options.h"
#include "execd/start_file.h"
#include "execd/trust.h"
#include "execd/users.h"

#define EXIT_NOT_STARTED 125 /* by our fault or the start file's */
#define EXIT_HOOK_FAILED 1

struct launch {
	struct app *app;
	struct options *options;
	launch_ended_fn *ended;
	void *arg;
	struct start_file_wait *wait;
	struct strv argv; /* of a start file */
	struct hooks *hooks;
	struct code_port *code_port;
	struct entrypoint *entrypoint;
};

/* Nothing will run here: say why, where people and programs look for it. */
static void give_up(struct launch *l, int code, const char *reason, const char *sentence)
{
	struct exit_record record = {.exit_code = code, .reason = reason, .error = sentence};

	log_line(LOG_ERROR, "entrypoint not started", LOG_S("err", sentence));
	entry_log_say(l->app->entry_log, "the entrypoint was not started: %s", sentence);
	exit_record_write(l->options, &record);
	l->ended(l->arg, code);
}

static void run_entrypoint(struct launch *l)
{
	struct err e = ERR_NONE;
	int code;

	if (l->options->entrypoint &&
	    entrypoint_start(l->app, l->ended, l->arg, &l->entrypoint, &code, &e) < 0) {
		log_line(LOG_ERROR, "entrypoint not started", LOG_S("err", e.msg));
		l->ended(l->arg, code);
		return;
	}
	codes_pool_fill(l->app->codes, view_of(l->options->code_pool));
	if (l->hooks)
		hooks_run_periodic(l->hooks);
}

static void on_pre_start(void *arg, const char *failure)
{
	struct launch *l = arg;

	if (failure)
		give_up(l, EXIT_HOOK_FAILED, "PRE_START_HOOK_FAILED", failure);
	else
		run_entrypoint(l);
}

/* Programs, and what the file routes make, are that user's. */
static int take_user(struct app *app, const struct start_file *f, struct err *e)
{
	osb_cleanup(users_freep) struct users *users = NULL;
	int r;

	if (!f->user)
		return 0;
	users = users_load();
	r = identity_parse(users, f->user, &app->identity, e);
	if (r < 0 || !app->identity)
		return r;
	identity_set_env(app->identity, &f->env, &app->env);
	return identity_enter(app->identity, e);
}

static int take_cwd(const char *cwd, struct err *e)
{
	osb_cleanup(mem_freep) char *path = mem_printf("%s%s", *cwd == '/' ? "" : "/", cwd);
	osb_cleanup(fd_closep) int fd = file_root_make_dirs(&file_root_real, path, e);

	if (fd < 0)
		return err_ctx(e, "working directory");
	if (fchdir(fd) < 0)
		return err_set(e, -errno, "chdir '%s': %m", path);
	return 0;
}

/* The environment and the token of the start file replace those that we were started with. */
static int take_settings(struct launch *l, struct start_file *f, struct err *e)
{
	struct app *app = l->app;

	for (size_t i = 0; i < f->env.len; i++) {
		struct view text = view_of(f->env.v[i]);
		size_t name_len = view_find(text, '=');

		strv_env_set(&app->env, view_first(text, name_len), view_skip(text, name_len + 1));
	}
	/* Before anything runs, and while everything may be written. */
	if (f->authority)
		trust_install(view_of(f->authority), &app->env);
	if (take_user(app, f, e) < 0)
		return e->code;
	env_add_defaults(&app->env);
	options_take_env(l->options, &app->env);
	free((char *)app->home);
	app->home = env_home(&app->env);
	free(l->options->own_token);
	l->options->access_token = l->options->own_token = take_ptr(f->token);
	l->argv = f->entrypoint;
	f->entrypoint = STRV_INIT;
	if (f->code_pool) {
		free(l->options->own_code_pool);
		l->options->code_pool = l->options->own_code_pool = take_ptr(f->code_pool);
	}
	l->options->entrypoint = l->argv.len > 0 ? strv_args(&l->argv) : NULL;
	if (f->cwd && take_cwd(f->cwd, e) < 0)
		return e->code;
	return f->lifecycle ? hooks_new(app, f->lifecycle, &l->hooks, e) : 0;
}

static void on_start_file(void *arg, struct start_file *f, struct err *e)
{
	struct launch *l = arg;
	int r;

	start_file_wait_free(take_ptr(l->wait));
	if (!f && e->code == 0) {
		l->ended(l->arg, EXIT_SUCCESS); /* nobody will ever want this one */
		return;
	}
	r = f ? take_settings(l, f, e) : e->code;
	if (f)
		start_file_done(f);
	if (r == 0)
		r = listen_all(l->app->server, l->options, e);
	if (r == 0)
		l->code_port = code_port_new(l->app);
	if (r < 0)
		give_up(l, EXIT_NOT_STARTED, "START_FAILED", e->msg);
	else if (l->hooks)
		hooks_run_pre_start(l->hooks, on_pre_start, l);
	else
		run_entrypoint(l);
}

int launch_new(struct app *app, struct options *o, launch_ended_fn *ended, void *arg,
	       struct launch **ret, struct err *e)
{
	struct launch *l = mem_new(struct launch);
	int r;

	l->app = app;
	l->options = o;
	l->ended = ended;
	l->arg = arg;
	*ret = l;
	if (o->start_fd >= 0)
		return start_file_wait_new(app->loop, o->start_fd, on_start_file, l, &l->wait, e);
	r = listen_all(app->server, o, e);
	if (r < 0)
		return r;
	/* The first process of a container: nobody else will answer there. */
	if (getpid() == 1)
		l->code_port = code_port_new(app);
	run_entrypoint(l);
	return 0;
}

bool launch_signal(struct launch *l, int signum)
{
	if (!l || !l->entrypoint)
		return false;
	entrypoint_signal(l->entrypoint, signum);
	return true;
}

void launch_free(struct launch *l)
{
	if (!l)
		return;
	start_file_wait_free(l->wait);
	hooks_free(l->hooks);
	code_port_free(l->code_port);
	entrypoint_free(l->entrypoint);
	strv_done(&l->argv);
	free(l);
}
