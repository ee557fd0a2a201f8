/*
 * execd/command_request.c - decodes what a client wants to have run.
 */
#include "execd/command_request.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/json.h"
#include "execd/app.h"
#include "execd/env.h"
#include "execd/find_shell.h"
#include "execd/paths.h"

#define ARGS_MAX 65536

void command_request_done(struct command_request *q)
{
	strv_done(&q->argv);
	strv_done(&q->own_env);
	buf_done(&q->content);
	json_free(q->body);
}

static int decode_shell(struct app *app, struct view command, struct command_request *q,
			struct err *e)
{
	const char *shell;

	if (command.len == 0)
		return err_set(e, -EINVAL, "command is empty");
	if (view_has(command, '\0'))
		return err_set(e, -EINVAL, "command has a NUL byte");
	shell = find_shell(app);
	if (!shell)
		q->spec.impossible = "no shell: neither bash nor sh was found in PATH";
	strv_add(&q->argv, shell ? shell : "sh");
	strv_add(&q->argv, "-c");
	strv_add_view(&q->argv, command);
	q->spec.path = shell;
	q->spec.content = command;
	return 0;
}

static int decode_argv(const struct json *argv, struct command_request *q, struct err *e)
{
	size_t n = json_len(argv);

	if (n == 0)
		return err_set(e, -EINVAL, "argv is empty");
	if (n > ARGS_MAX)
		return err_set(e, -E2BIG, "argv has more than %d strings", ARGS_MAX);
	for (size_t i = 0; i < n; i++) {
		struct view text;

		if (!json_str(json_at(argv, i), &text))
			return err_set(e, -EINVAL, "argv[%zu] must be a string", i);
		if (view_has(text, '\0'))
			return err_set(e, -EINVAL, "argv[%zu] has a NUL byte", i);
		if (i == 0 && text.len == 0)
			return err_set(e, -EINVAL, "argv[0] is empty");
		strv_add_view(&q->argv, text);
		if ((i > 0 && buf_append_char(&q->content, ' ') < 0) ||
		    buf_append_view(&q->content, text) < 0)
			return err_set(e, -E2BIG, "argv is too long");
	}
	q->spec.content = buf_view(&q->content);
	return 0;
}

static int decode_program(struct app *app, const struct json *body, struct command_request *q,
			  struct err *e)
{
	const struct json *argv = NULL;
	struct view command = VIEW_NONE;
	int has_command = json_field_string(body, "command", &command, e);
	int has_argv;

	if (has_command < 0)
		return has_command;
	has_argv = json_field_array(body, "argv", &argv, e);
	if (has_argv < 0)
		return has_argv;
	if (has_argv && has_command && command.len > 0)
		return err_set(e, -EINVAL, "command and argv exclude each other");
	if (has_argv)
		return decode_argv(argv, q, e);
	if (!has_command)
		return err_set(e, -EINVAL, "command is missing");
	return decode_shell(app, command, q, e);
}

static int decode_env(struct app *app, const struct json *body, struct command_request *q,
		      struct err *e)
{
	const struct json *envs = NULL;

	if (json_field_object(body, "envs", &envs, e) < 0)
		return e->code;
	q->env = &app->env;
	if (envs || !env_is_plain(app)) {
		if (env_for_command(app, envs, &q->own_env, e) < 0)
			return e->code;
		q->env = &q->own_env;
	}
	q->spec.env = strv_args(q->env);
	q->spec.search_path = strv_env_get(q->env, VIEW("PATH"));
	return 0;
}

static int set_cwd(struct app *app, struct arena *a, struct view cwd, struct command_request *q,
		   struct err *e)
{
	if (cwd.len == 0)
		return 0;
	if (paths_resolve(app, a, cwd, q->env, &q->spec.cwd, e) < 0 ||
	    paths_check_dir(q->spec.cwd, e) < 0)
		return err_ctx(e, "cwd");
	return 0;
}

static int decode_cwd(struct app *app, struct arena *a, const struct json *body,
		      struct command_request *q, struct err *e)
{
	struct view cwd = VIEW_NONE;

	if (json_field_string(body, "cwd", &cwd, e) < 0)
		return e->code;
	return set_cwd(app, a, cwd, q, e);
}

static int decode_ids(const struct json *body, struct command_request *q, struct err *e)
{
	int64_t uid = 0, gid = 0;
	int has_uid = json_field_int(body, "uid", 0, UINT32_MAX - 1, &uid, e);
	struct users *users;
	int has_gid;

	if (has_uid < 0)
		return has_uid;
	has_gid = json_field_int(body, "gid", 0, UINT32_MAX - 1, &gid, e);
	if (has_gid < 0)
		return has_gid;
	if (has_gid && !has_uid)
		return err_set(e, -EINVAL, "gid needs a uid");
	if (!has_uid)
		return 0;
	q->spec.has_ids = true;
	q->spec.uid = (uid_t)uid;
	q->spec.groups = q->groups;
	users = users_load();
	/* A user that the sandbox does not know has no groups, and gid 0 unless one is given. */
	if (!users_identity(users, q->spec.uid, &q->spec.gid, q->groups, &q->spec.groups_n))
		q->spec.groups_n = 0;
	users_free(users);
	if (has_gid)
		q->spec.gid = (gid_t)gid;
	return 0;
}

static int decode(struct app *app, struct arena *a, struct command_request *q, struct err *e)
{
	const struct json *body = q->body;
	int64_t timeout_ms = 0;

	if (json_kind(body) != JSON_OBJECT)
		return err_set(e, -EINVAL, "the body must be an object, not %s",
			       json_kind_name(json_kind(body)));
	if (decode_program(app, body, q, e) < 0 || decode_env(app, body, q, e) < 0 ||
	    decode_cwd(app, a, body, q, e) < 0 || decode_ids(body, q, e) < 0)
		return e->code;
	if (json_field_bool(body, "background", &q->spec.background, e) < 0 ||
	    json_field_int(body, "timeout", 0, INT64_MAX / 1000000, &timeout_ms, e) < 0)
		return e->code;
	q->spec.timeout_ms = (uint64_t)timeout_ms;
	q->spec.argv = strv_args(&q->argv);
	return 0;
}

int command_request_line(struct app *app, struct arena *a, struct view command, struct view cwd,
			 bool background, struct command_request *q, struct err *e)
{
	memset(q, 0, sizeof(*q));
	buf_init(&q->content, COMMAND_REQUEST_MAX);
	if (decode_shell(app, command, q, e) < 0 || decode_env(app, /* body= */ NULL, q, e) < 0 ||
	    set_cwd(app, a, cwd, q, e) < 0)
		return e->code;
	q->spec.background = background;
	q->spec.argv = strv_args(&q->argv);
	return 0;
}

int command_request_decode(struct app *app, struct arena *a, struct view text,
			   struct command_request *q, struct err *e)
{
	memset(q, 0, sizeof(*q));
	buf_init(&q->content, COMMAND_REQUEST_MAX + ARGS_MAX);
	if (json_parse(text, JSON_FIRST_VALUE, &q->body, e) < 0)
		return e->code;
	return decode(app, a, q, e);
}
