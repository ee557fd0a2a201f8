/*
 * execd/main.c - the daemon inside a sandbox: comes up, serves until it is told to end, goes.
 *
 * As process 1 (or with --init) it is also the sandbox's init; with a program behind "--" it lives
 * as long as that program and exits as it does.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "execd/app.h"
#include "execd/code_kernel.h"
#include "execd/entry_log.h"
#include "execd/env.h"
#include "execd/identity.h"
#include "execd/launch.h"
#include "execd/options.h"
#include "execd/parts.h"
#include "execd/reaper.h"
#include "execd/routes.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "sys/protect.h"
#include "sys/strict_filter.h"

#define EXIT_USAGE   2
#define KEEP_BYTES   (64 * 1024)  /* of free memory at the heap's top */
#define MAPPED_BYTES (128 * 1024) /* and above: mapped, and so given back at once */

/* Passed on to the entrypoint; the first two end a daemon that has none. */
static const int signals[] = {
	SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGALRM, SIGTSTP, SIGCONT,
};

struct daemon {
	struct app app;
	struct options options;
	struct launch *launch;
	struct loop_signal *signals[ARRAY_LEN(signals)];
	int exit_code;
	bool stopping;
};

static void stopped(void *arg)
{
	struct daemon *d = arg;

	loop_stop(d->app.loop);
}

static void stop(struct daemon *d, int exit_code)
{
	if (d->stopping) {
		loop_stop(d->app.loop);
		return;
	}
	d->stopping = true;
	d->exit_code = exit_code;
	log_line(LOG_INFO, "stopping");
	http_server_drain(d->app.server, d->options.grace_ms, stopped, d);
}

static void on_signal(void *arg, int signum)
{
	struct daemon *d = arg;

	if (!d->stopping && launch_signal(d->launch, signum))
		return;
	if (signum == SIGTERM || signum == SIGINT)
		stop(d, EXIT_SUCCESS);
}

static void on_ended(void *arg, int code)
{
	stop(arg, code);
}

/* Whoever started us may have blocked or ignored what we live by. */
static void reset_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
}

static int watch_signals(struct daemon *d, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		/* Without an entrypoint only the first two mean anything; the rest keeps its ways.
		 */
		if (!d->options.entrypoint && d->options.start_fd < 0 && i >= 2)
			break;
		if (loop_signal_new(d->app.loop, signals[i], on_signal, d, &d->signals[i], e) < 0)
			return err_ctx(e, "signal %d", signals[i]);
	}
	return 0;
}

static int start(struct daemon *d, struct err *e)
{
	struct app *app = &d->app;
	bool init = d->options.init || getpid() == 1;
	int r;

	app->options = &d->options;
	protect_raise_nofile(&app->nofile);
	app->filter = d->options.harden ? strict_filter() : NULL;
	env_inherit(&app->env, environ);
	app->home = env_home(&app->env);
	if (loop_new(&app->loop, e) < 0)
		return e->code;
	if (init && getpid() != 1 && (r = protect_become_subreaper()) < 0)
		return err_set(e, r, "become the reaper of orphans: %s", strerror(-r));
	if (reaper_new(app->loop, init, &app->reaper, e) < 0)
		return err_ctx(e, "reaper");
	if (watch_signals(d, e) < 0)
		return e->code;
	if (parts_start(app, e) < 0)
		return e->code;
	if (http_server_new(app->loop, &http_limits_default, routes_handle, app, &app->server, e) <
	    0)
		return err_ctx(e, "server");
	if (d->options.log_fd >= 0 &&
	    entry_log_new(app->loop, d->options.log_fd, d->options.log_max, &app->entry_log, e) < 0)
		return e->code;
	return launch_new(app, &d->options, on_ended, d, &d->launch, e);
}

static void finish(struct daemon *d)
{
	http_server_free(d->app.server);
	parts_stop(&d->app);
	launch_free(d->launch);
	entry_log_free(d->app.entry_log);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		loop_signal_free(d->signals[i]);
	reaper_free(d->app.reaper);
	loop_free(d->app.loop);
	identity_free(d->app.identity);
	free((char *)d->app.home);
	strv_done(&d->app.env);
	options_done(&d->options);
}

static int open_log(const struct options *o, struct err *e)
{
	int fd = 2;

	if (o->log_file) {
		fd = open(o->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
		if (fd < 0)
			return err_set(e, -errno, "open the log '%s': %m", o->log_file);
	}
	log_init("execd", o->log_level, fd);
	return 0;
}

static int serve(struct daemon *d)
{
	struct err e = ERR_NONE;

	if (open_log(&d->options, &e) < 0) {
		log_init("execd", d->options.log_level, 2);
		log_line(LOG_WARN, "logging to stderr", LOG_S("err", e.msg));
	}
	if (start(d, &e) < 0) {
		log_line(LOG_ERROR, "cannot start", LOG_S("err", e.msg));
		return EXIT_FAILURE;
	}
	loop_run(d->app.loop);
	return d->exit_code;
}

/* Memory that a burst took goes back: an idle daemon is a small one. */
static void tune_memory(void)
{
	mallopt(M_TRIM_THRESHOLD, KEEP_BYTES);
	mallopt(M_TOP_PAD, KEEP_BYTES);
	mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
}

int main(int argc, char **argv)
{
	struct daemon d = {0};
	struct err e = ERR_NONE;
	int code;

	/* One of our own children: between us and a Jupyter kernel. */
	if (argc == 3 && strcmp(argv[1], CODE_KERNEL_ARG) == 0)
		return code_kernel_main(argv[2]);
	protect_from_tracing();
	protect_descriptors();
	reset_signals();
	tune_memory();
	if (options_parse(&d.options, argc, argv, &e) < 0) {
		fprintf(stderr, "execd: %s\n", e.msg);
		options_done(&d.options);
		return EXIT_USAGE;
	}
	if (d.options.help || d.options.version) {
		fputs(d.options.help ? options_help : "execd " OSB_VERSION "\n", stdout);
		options_done(&d.options);
		return EXIT_SUCCESS;
	}
	options_hide_token(&d.options);
	code = serve(&d);
	finish(&d);
	return code;
}
