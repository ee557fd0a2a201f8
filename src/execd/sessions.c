/*
 * execd/sessions.c - sessions by id, and the processes of their shells.
 */
#include "execd/sessions.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rand.h"
#include "execd/app.h"
#include "execd/env.h"
#include "execd/process.h"
#include "execd/shell.h"

struct session {
	struct app *app;
	char id[RAND_UUID_LEN + 1];
	struct shell *shell;
	struct process *process; /* of the shell; NULL until the first run */
};

struct sessions {
	struct app *app;
	struct map *by_id;
};

static void on_ended(void *arg, int status)
{
	struct session *s = arg;

	process_free(s->process);
	s->process = NULL;
	shell_exited(s->shell, status);
}

static int start_shell(void *arg, int control, int output, bool restored, enum shell_kind *ret_kind,
		       struct err *e)
{
	static const struct {
		enum shell_kind kind;
		char *argv[5];
	} shells[] = {
		{SHELL_BASH,
		 {(char *)"bash", (char *)"--noprofile", (char *)"--norc", (char *)"-s"}},
		{SHELL_POSIX, {(char *)"sh", (char *)"-s"}},
	};
	static char *const nothing[] = {NULL};
	osb_cleanup(strv_done) struct strv env = STRV_INIT;
	struct session *s = arg;
	struct spawn spec = {
		.search_path = strv_env_get(&s->app->env, VIEW("PATH")),
		.fds = {control, output, output},
	};
	int r = -ENOENT;

	if (!restored && env_for_command(s->app, NULL, &env, e) < 0)
		return e->code;
	spec.env = restored ? nothing : strv_args(&env);
	for (size_t i = 0; i < ARRAY_LEN(shells) && r == -ENOENT; i++) {
		spec.argv = shells[i].argv;
		*ret_kind = shells[i].kind;
		r = process_start(s->app, &spec, on_ended, s, &s->process, e);
	}
	return r < 0 ? err_ctx(e, "start a shell") : 0;
}

static void signal_shell(void *arg, int signum)
{
	struct session *s = arg;

	if (s->process)
		process_signal(s->process, signum, /* group= */ true);
}

static const struct shell_host host = {.start = start_shell, .signal = signal_shell};

static void session_free(struct session *s)
{
	shell_free(s->shell);
	process_free(s->process);
	free(s);
}

struct sessions *sessions_new(struct app *app)
{
	struct sessions *s = mem_new(struct sessions);

	s->app = app;
	s->by_id = map_new();
	return s;
}

void sessions_free(struct sessions *s)
{
	struct view key;
	void *value;
	size_t pos = 0;

	if (!s)
		return;
	while (map_next(s->by_id, &pos, &key, &value))
		session_free(value);
	map_free(s->by_id);
	free(s);
}

int sessions_create(struct sessions *s, const char *cwd, const char **ret_id, struct err *e)
{
	struct session *session;
	int r;

	if (map_len(s->by_id) >= SESSIONS_MAX)
		return err_set(e, -EBUSY, "there are %d sessions already; delete one first",
			       SESSIONS_MAX);
	session = mem_new(struct session);
	session->app = s->app;
	rand_uuid(session->id);
	r = shell_new(s->app, &host, session, cwd, &session->shell, e);
	if (r < 0) {
		session_free(session);
		return r;
	}
	map_put(s->by_id, view_of(session->id), session);
	*ret_id = session->id;
	return 0;
}

struct shell *sessions_find(struct sessions *s, struct view id, const char **ret_id)
{
	struct session *session = map_get(s->by_id, id);

	if (session && ret_id)
		*ret_id = session->id;
	return session ? session->shell : NULL;
}

bool sessions_close(struct sessions *s, struct view id)
{
	struct session *session = map_remove(s->by_id, id);

	if (!session)
		return false;
	session_free(session);
	return true;
}
