/*
 * execd/api_command.c - /command: decodes, asks execd/command, encodes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/utf8.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "codec/rfc3339.h"
#include "codec/url.h"
#include "execd/app.h"
#include "execd/command.h"
#include "execd/env.h"
#include "execd/errors.h"
#include "execd/find_shell.h"
#include "execd/paths.h"
#include "execd/routes.h"
#include "execd/sessions.h"
#include "execd/users.h"
#include "net/http_server.h"

#define BODY_MAX      ((size_t)8 * 1024 * 1024)
#define STATUS_MAX    ((size_t)64 * 1024 * 1024) /* a status repeats the command, escaped */
#define ARGS_MAX      65536
#define CURSOR_HEADER "EXECD-COMMANDS-TAIL-CURSOR"
#define CURSOR_DIGITS 24

/* What the decoded request owns while the command is started. */
struct request {
	struct command_spec spec;
	struct strv argv;
	struct strv own_env;
	const struct strv *env;
	struct buf content;
	gid_t groups[USERS_MAX_GROUPS];
};

static void request_done(struct request *q)
{
	strv_done(&q->argv);
	strv_done(&q->own_env);
	buf_done(&q->content);
}

static int decode_shell(struct app *app, struct view command, struct request *q, struct err *e)
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

static int decode_argv(const struct json *argv, struct request *q, struct err *e)
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

static int decode_program(struct app *app, const struct json *body, struct request *q,
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

static int decode_env(struct app *app, const struct json *body, struct request *q, struct err *e)
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

static int decode_cwd(struct app *app, struct arena *a, const struct json *body, struct request *q,
		      struct err *e)
{
	struct view cwd = VIEW_NONE;

	if (json_field_string(body, "cwd", &cwd, e) < 0)
		return e->code;
	if (cwd.len == 0)
		return 0;
	if (paths_resolve(app, a, cwd, q->env, &q->spec.cwd, e) < 0 ||
	    paths_check_dir(q->spec.cwd, e) < 0)
		return err_ctx(e, "cwd");
	return 0;
}

static int decode_ids(const struct json *body, struct request *q, struct err *e)
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

static int decode(struct app *app, struct arena *a, const struct json *body, struct request *q,
		  struct err *e)
{
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

static void run_body(struct http_exchange *x, struct view text, void *arg)
{
	osb_cleanup(request_done) struct request q = {.content = BUF_INIT(BODY_MAX + ARGS_MAX)};
	osb_cleanup(json_freep) struct json *body = NULL;
	struct err e = ERR_NONE;
	struct app *app = arg;

	if (json_parse(text, JSON_FIRST_VALUE, &body, &e) < 0 ||
	    decode(app, http_arena(x), body, &q, &e) < 0) {
		reply_bad_request(x, CODE_INVALID_REQUEST, &e);
		return;
	}
	commands_run(app->commands, x, &q.spec);
}

static void run(struct http_exchange *x, void *app)
{
	http_body_collect(x, BODY_MAX, run_body, app);
}

static void interrupt(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct view id = VIEW_NONE;
	struct err e = ERR_NONE;
	struct command *c;

	if (url_query_get(http_arena(x), http_query(x), "id", &id) <= 0 || id.len == 0) {
		http_reply_error(x, 400, CODE_MISSING_QUERY, "the query parameter id is missing");
		return;
	}
	c = commands_find(app->commands, id);
	if (!c && sessions_close(app->sessions, id)) {
		reply_empty(x);
		return;
	}
	if (!c)
		err_set(&e, -ESRCH, "command '" VIEW_FMT "' is unknown",
			VIEW_ARG(view_first(id, 64)));
	if (!c || command_interrupt(c, x, &e) < 0)
		reply_runtime_error(x, &e);
}

static void put_time(struct json_writer *w, const char *key, uint64_t ns)
{
	char text[RFC3339_MAX];

	rfc3339_format((int64_t)ns, text);
	json_put_cstr(w, key, text);
}

static int encode_status(const struct command_status *s, struct buf *ret)
{
	struct json_writer w;

	json_writer_init(&w, ret);
	json_write_object(&w);
	json_put_cstr(&w, "id", s->id);
	json_put_string(&w, "content", s->content);
	json_put_bool(&w, "running", s->running);
	if (!s->running)
		json_put_int(&w, "exit_code", s->exit_code);
	if (s->error)
		json_put_cstr(&w, "error", s->error);
	put_time(&w, "started_at", s->started_ns);
	if (!s->running)
		put_time(&w, "finished_at", s->finished_ns);
	json_write_object_end(&w);
	return json_writer_end(&w);
}

static void status(struct http_exchange *x, void *arg)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(STATUS_MAX);
	struct app *app = arg;
	struct view id = route_param(x, "id");
	struct command *c = commands_find(app->commands, id);
	struct command_status s;

	if (!c) {
		http_reply_error(x, 404, CODE_INVALID_REQUEST, "command '" VIEW_FMT "' is unknown",
				 VIEW_ARG(view_first(id, 64)));
		return;
	}
	command_status(c, &s);
	if (encode_status(&s, &text) < 0)
		http_reply_error(x, 500, CODE_RUNTIME, "the status is too large");
	else
		http_reply(x, 200, "application/json", buf_view(&text));
}

/* How much of the log may be sent now: what is being written may end inside a character. */
static uint64_t whole_characters(int fd, uint64_t start, uint64_t end, bool running)
{
	char tail[3];
	size_t n = (size_t)MIN((uint64_t)sizeof(tail), end - start);

	if (!running || n == 0 || pread(fd, tail, n, (off_t)(end - n)) != (ssize_t)n)
		return end;
	return end - utf8_incomplete_tail(view_mem(tail, n));
}

static void logs(struct http_exchange *x, void *arg)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct app *app = arg;
	struct view id = route_param(x, "id"), text = VIEW_NONE;
	struct command *c = commands_find(app->commands, id);
	struct command_status s;
	struct err e = ERR_NONE;
	char cursor[CURSOR_DIGITS];
	uint64_t start = 0, size = 0;

	if (!c)
		err_set(&e, -EINVAL, "command '" VIEW_FMT "' is unknown",
			VIEW_ARG(view_first(id, 64)));
	if (!c || command_log(c, &fd, &size, &e) < 0) {
		reply_bad_request(x, CODE_INVALID_REQUEST, &e);
		return;
	}
	if (url_query_get(http_arena(x), http_query(x), "cursor", &text) <= 0 ||
	    !num_parse_u64(text, &start))
		start = 0;
	start = MIN(start, size);
	command_status(c, &s);
	size = whole_characters(fd, start, size, s.running);
	snprintf(cursor, sizeof(cursor), "%llu", (unsigned long long)size);
	http_reply_header(x, CURSOR_HEADER, view_of(cursor));
	http_reply_header(x, "Content-Type", VIEW("text/plain; charset=utf-8"));
	http_reply_file(x, 200, take_fd(fd), start, size - start);
}

const struct route api_command_routes[] = {
	{"POST", "/command", run, 0},
	{"DELETE", "/command", interrupt, 0},
	{"GET", "/command/status/{id}", status, 0},
	{"GET", "/command/{id}/logs", logs, 0},
	{0},
};
