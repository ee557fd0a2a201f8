/*
 * cli/foreground.c - see foreground.h.
 */
#include "cli/foreground.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"

/* Interrupts are bytes in a pipe: a handler may do no more. */
static int pipe_ends[2] = {-1, -1};

static void on_interrupt(int signum)
{
	int kept = errno;

	(void)signum;
	if (write(pipe_ends[1], "i", 1) < 0)
		errno = kept;
	errno = kept;
}

struct foreground {
	struct cli *cli;
	osb_sandbox *box;
	pthread_mutex_t lock; /* of the id */
	char id[OSB_ID_MAX];
	bool interrupted;
};

static int on_started(void *arg, const char *id)
{
	struct foreground *f = arg;

	(void)pthread_mutex_lock(&f->lock);
	snprintf(f->id, sizeof(f->id), "%s", id);
	(void)pthread_mutex_unlock(&f->lock);
	return 0;
}

static int put(FILE *to, const char *text, size_t n)
{
	return fwrite(text, 1, n, to) == n && fflush(to) == 0 ? 0 : -1;
}

static int on_out(void *arg, const char *text, size_t n)
{
	(void)arg;
	return put(stdout, text, n);
}

static int on_err(void *arg, const char *text, size_t n)
{
	(void)arg;
	return put(stderr, text, n);
}

/* Passes interrupts on, from a thread of its own: the other one reads the stream. */
static void *watch(void *arg)
{
	struct foreground *f = arg;
	char word, id[OSB_ID_MAX];

	while (read(pipe_ends[0], &word, 1) == 1 && word == 'i') {
		(void)pthread_mutex_lock(&f->lock);
		memcpy(id, f->id, sizeof(id));
		(void)pthread_mutex_unlock(&f->lock);
		if (f->interrupted || !id[0]) {
			osb_cancel_now(f->cli->cancel);
			continue;
		}
		f->interrupted = true;
		(void)osb_command_interrupt(f->box, id, NULL, NULL);
	}
	return NULL;
}

static int stream(struct foreground *f, const char *session, const osb_command *what)
{
	osb_output output = {.started = on_started, .out = on_out, .err = on_err, .arg = f};
	struct cli *c = f->cli;
	osb_run run;
	int r = session ? osb_session_run(f->box, session, what, &output, &c->call, &run, &c->e)
			: osb_command_run(f->box, what, &output, &c->call, &run, &c->e);

	if (r == OSB_ERR_CANCELLED && (ferror(stdout) || ferror(stderr)))
		return CLI_FAILED; /* nobody reads it any more */
	if (r < 0)
		return cli_fail(c);
	if (f->interrupted)
		return CLI_INTERRUPTED;
	if (run.has_exit_code)
		return run.exit_code < 0 ? 255 : run.exit_code;
	return cli_error(c, "%s: %s", run.error_name[0] ? run.error_name : "the command failed",
			 run.error_value);
}

int foreground_run(struct cli *c, osb_sandbox *s, const char *session, const osb_command *what)
{
	struct foreground f = {.cli = c, .box = s, .lock = PTHREAD_MUTEX_INITIALIZER};
	struct sigaction action = {.sa_handler = on_interrupt}, before;
	pthread_t thread;
	int code;

	if (pipe2(pipe_ends, O_CLOEXEC) < 0 || pthread_create(&thread, NULL, watch, &f) != 0)
		return cli_error(c, "no pipe or thread for interrupts: %s", strerror(errno));
	(void)sigaction(SIGINT, &action, &before);
	code = stream(&f, session, what);
	(void)sigaction(SIGINT, &before, NULL);
	if (write(pipe_ends[1], "e", 1) == 1)
		(void)pthread_join(thread, NULL);
	pipe_ends[0] = fd_close(pipe_ends[0]);
	pipe_ends[1] = fd_close(pipe_ends[1]);
	return code;
}
