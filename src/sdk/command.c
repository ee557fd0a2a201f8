/*
 * sdk/command.c - commands and sessions.
 */
#include <inttypes.h>
#include <opensandbox/command.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "codec/url.h"
#include "sdk/document.h"
#include "sdk/fail.h"
#include "sdk/sandbox_int.h"
#include "sdk/stream.h"

#define BODY_MAX       (16u << 20)
#define PATH_MAX_BYTES 512

static int understand(const osb_command *what, osb_command *ret, osb_error *e)
{
	*ret = (osb_command)OSB_COMMAND_INIT;
	if (!what || what->size == 0)
		return fail(e, OSB_ERR_INVALID, "an osb_command begins with OSB_COMMAND_INIT");
	memcpy(ret, what, MIN(what->size, sizeof(*ret)));
	if (!ret->command == !(ret->argv && ret->argv[0]))
		return fail(e, OSB_ERR_INVALID, "a command has either a text or arguments");
	return 0;
}

static void put_argv(struct json_writer *w, const char *const *argv)
{
	json_write_key(w, "argv");
	json_write_array(w);
	for (; *argv; argv++)
		json_write_cstr(w, *argv);
	json_write_array_end(w);
}

static int write_request(const osb_command *o, struct buf *out, osb_error *e)
{
	struct json_writer w;

	json_writer_init(&w, out);
	json_write_object(&w);
	if (o->command)
		json_put_cstr(&w, "command", o->command);
	else if (o->argv)
		put_argv(&w, o->argv);
	if (o->cwd)
		json_put_cstr(&w, "cwd", o->cwd);
	if (o->background)
		json_put_bool(&w, "background", true);
	if (o->timeout_ms)
		json_put_int(&w, "timeout", o->timeout_ms);
	if (o->has_uid)
		json_put_int(&w, "uid", o->uid);
	if (o->has_gid)
		json_put_int(&w, "gid", o->gid);
	if (o->env_n) {
		json_write_key(&w, "envs");
		json_write_object(&w);
		for (size_t i = 0; i < o->env_n; i++)
			json_put_cstr(&w, o->env[i].name, o->env[i].value);
		json_write_object_end(&w);
	}
	json_write_object_end(&w);
	return json_writer_end(&w) < 0
		       ? fail(e, OSB_ERR_INVALID, "the command is larger than %u bytes", BODY_MAX)
		       : 0;
}

/* In the foreground: it came to its end. */
static void set_exit_code(const osb_command *o, osb_run *run)
{
	if (!run || o->background || !run->complete || run->error_name[0])
		return;
	run->has_exit_code = true;
	run->exit_code = 0;
}

static int run_at(osb_sandbox *s, const char *path, const osb_command *o, const osb_output *output,
		  const osb_call *call, osb_run *ret, osb_error *e)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	osb_run own;
	struct asking q;
	int r;

	ret = ret ? ret : &own;
	*ret = (osb_run){.exit_code = -1};
	if (write_request(o, &body, e) < 0)
		return (int)OSB_ERR_INVALID;
	r = asking_exec(s, OSB_PORT_EXEC, "POST", path, call, &q, e);
	if (r == 0) {
		asking_json(&q, &body);
		r = stream_run(s, &q, output, true, call, ret, e);
		set_exit_code(o, ret);
	}
	asking_done(&q);
	return r;
}

int osb_command_run(osb_sandbox *s, const osb_command *what, const osb_output *output,
		    const osb_call *call, osb_run *ret, osb_error *e)
{
	osb_command o;
	int r;

	fail_none(e);
	r = understand(what, &o, e);
	return r < 0 ? r : run_at(s, "/command", &o, output, call, ret, e);
}

/* "<before><id><after>", the id percent-encoded. */
static int path_of(char ret[PATH_MAX_BYTES], const char *before, const char *id, const char *after,
		   osb_error *e)
{
	osb_cleanup(buf_done) struct buf path = BUF_INIT(PATH_MAX_BYTES - 1);

	if (!id || !id[0])
		return fail(e, OSB_ERR_INVALID, "an id is missing");
	if (buf_append_str(&path, before) < 0 || url_encode(&path, view_of(id), false) < 0 ||
	    buf_append_str(&path, after) < 0)
		return fail(e, OSB_ERR_INVALID, "the id is too long");
	memcpy(ret, buf_str(&path), path.len + 1);
	return 0;
}

/* ---- commands that run ---- */

static int read_status(struct document *d, void *ret)
{
	osb_command_status *p = ret;
	int64_t code;

	(void)json_bool(json_get(d->json, "running"), &p->running);
	p->has_exit_code = json_int(json_get(d->json, "exit_code"), &code);
	p->exit_code = p->has_exit_code ? (int)code : -1;
	p->command = document_str(d, d->json, "content");
	p->error = document_str(d, d->json, "error");
	p->started_at = document_str(d, d->json, "started_at");
	p->finished_at = document_str(d, d->json, "finished_at");
	p->json = d->text;
	return 0;
}

int osb_command_get(osb_sandbox *s, const char *id, const osb_call *call, osb_command_status **ret,
		    osb_error *e)
{
	char path[PATH_MAX_BYTES];
	struct asking q = {0};
	int r = path_of(path, "/command/status/", id, "", e);

	if (r == 0)
		r = asking_exec(s, OSB_PORT_EXEC, "GET", path, call, &q, e);
	if (r == 0)
		r = asking_object(s->client, &q, call, sizeof(**ret), read_status, (void **)ret, e);
	asking_done(&q);
	return r;
}

void osb_command_status_free(osb_command_status *p)
{
	object_free(p);
}

int osb_command_logs(osb_sandbox *s, const char *id, int64_t *cursor, const osb_call *call,
		     char **ret_text, size_t *ret_n, osb_error *e)
{
	char path[PATH_MAX_BYTES], from[24];
	struct answer answer;
	struct asking q = {0};
	struct view tail;
	int r = path_of(path, "/command/", id, "/logs", e);

	answer_init(&answer);
	if (r == 0)
		r = asking_exec(s, OSB_PORT_EXEC, "GET", path, call, &q, e);
	if (r == 0) {
		snprintf(from, sizeof(from), "%" PRId64, cursor ? *cursor : 0);
		asking_param(&q, "cursor", from);
		q.ask.target = buf_view(&q.target);
		r = ask_whole(s->client, &q.ask, call, &answer, e);
	}
	if (r == 0) {
		if (cursor && answer_header(&answer, "EXECD-COMMANDS-TAIL-CURSOR", &tail))
			(void)num_parse_i64(tail, cursor);
		if (ret_n)
			*ret_n = answer.body.len;
		*ret_text = buf_take_str(&answer.body);
	}
	answer_done(&answer);
	asking_done(&q);
	return r;
}

int osb_command_interrupt(osb_sandbox *s, const char *id, const osb_call *call, osb_error *e)
{
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EXEC, "DELETE", "/command", call, &q, e);

	if (r == 0) {
		asking_param(&q, "id", id ? id : "");
		r = asking_do(s->client, &q, call, e);
	}
	asking_done(&q);
	return r;
}

/* ---- sessions ---- */

int osb_session_create(osb_sandbox *s, const char *cwd, const osb_call *call, char *ret_id,
		       osb_error *e)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct json_writer w;
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EXEC, "POST", "/session", call, &q, e);

	json_writer_init(&w, &body);
	json_write_object(&w);
	if (cwd)
		json_put_cstr(&w, "cwd", cwd);
	json_write_object_end(&w);
	if (r == 0 && json_writer_end(&w) < 0)
		r = fail(e, OSB_ERR_INVALID, "the directory's name is too long");
	if (r == 0) {
		asking_json(&q, &body);
		r = asking_id(s->client, &q, call, "session_id", ret_id, e);
	}
	asking_done(&q);
	return r;
}

int osb_session_run(osb_sandbox *s, const char *id, const osb_command *what,
		    const osb_output *output, const osb_call *call, osb_run *ret, osb_error *e)
{
	char path[PATH_MAX_BYTES];
	osb_command o;
	int r;

	fail_none(e);
	r = understand(what, &o, e);
	if (r == 0)
		r = path_of(path, "/session/", id, "/run", e);
	return r < 0 ? r : run_at(s, path, &o, output, call, ret, e);
}

int osb_session_delete(osb_sandbox *s, const char *id, const osb_call *call, osb_error *e)
{
	char path[PATH_MAX_BYTES];
	struct asking q = {0};
	int r = path_of(path, "/session/", id, "", e);

	if (r == 0)
		r = asking_exec(s, OSB_PORT_EXEC, "DELETE", path, call, &q, e);
	if (r == 0)
		r = asking_do(s->client, &q, call, e);
	asking_done(&q);
	return r;
}
