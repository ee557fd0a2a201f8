/*
 * sdk/code.c - code in interpreters that keep their state.
 */
#include <opensandbox/command.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "codec/url.h"
#include "sdk/document.h"
#include "sdk/fail.h"
#include "sdk/sandbox_int.h"
#include "sdk/stream.h"

#define BODY_MAX (16u << 20)

int osb_code_create(osb_sandbox *s, const char *language, const char *cwd, const osb_call *call,
		    char *ret_id, osb_error *e)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct json_writer w;
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EXEC, "POST", "/code/context", call, &q, e);

	json_writer_init(&w, &body);
	json_write_object(&w);
	json_put_cstr(&w, "language", language ? language : "python");
	if (cwd)
		json_put_cstr(&w, "cwd", cwd);
	json_write_object_end(&w);
	if (r == 0 && json_writer_end(&w) < 0)
		r = fail(e, OSB_ERR_INVALID, "the directory's name is too long");
	if (r == 0) {
		asking_json(&q, &body);
		r = asking_id(s->client, &q, call, "id", ret_id, e);
	}
	asking_done(&q);
	return r;
}

static int write_request(const char *language, const char *context_id, const char *code,
			 struct buf *out, osb_error *e)
{
	struct json_writer w;

	json_writer_init(&w, out);
	json_write_object(&w);
	json_put_cstr(&w, "code", code);
	json_write_key(&w, "context");
	json_write_object(&w);
	if (context_id)
		json_put_cstr(&w, "id", context_id);
	json_put_cstr(&w, "language", language ? language : "python");
	json_write_object_end(&w);
	json_write_object_end(&w);
	return json_writer_end(&w) < 0
		       ? fail(e, OSB_ERR_INVALID, "the code is larger than %u bytes", BODY_MAX)
		       : 0;
}

int osb_code_run(osb_sandbox *s, const char *language, const char *context_id, const char *code,
		 const osb_output *output, const osb_call *call, osb_run *ret, osb_error *e)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct asking q;
	int r;

	fail_none(e);
	if (!code)
		return fail(e, OSB_ERR_INVALID, "there is no code to run");
	if (write_request(language, context_id, code, &body, e) < 0)
		return (int)OSB_ERR_INVALID;
	r = asking_exec(s, OSB_PORT_EXEC, "POST", "/code", call, &q, e);
	if (r == 0) {
		asking_json(&q, &body);
		r = stream_run(s, &q, output, false, call, ret, e);
	}
	asking_done(&q);
	return r;
}

/* DELETE `path` with one word in its query. */
static int delete_by(osb_sandbox *s, const char *path, const char *name, const char *value,
		     const osb_call *call, osb_error *e)
{
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EXEC, "DELETE", path, call, &q, e);

	if (r == 0) {
		asking_param(&q, name, value);
		r = asking_do(s->client, &q, call, e);
	}
	asking_done(&q);
	return r;
}

int osb_code_interrupt(osb_sandbox *s, const char *context_id, const osb_call *call, osb_error *e)
{
	return delete_by(s, "/code", "id", context_id ? context_id : "", call, e);
}

int osb_code_clear(osb_sandbox *s, const char *language, const osb_call *call, osb_error *e)
{
	return delete_by(s, "/code/contexts", "language", language ? language : "python", call, e);
}

int osb_code_delete(osb_sandbox *s, const char *context_id, const osb_call *call, osb_error *e)
{
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EXEC, "DELETE", "/code/contexts/", call, &q, e);

	if (r == 0 && (!context_id || !context_id[0] ||
		       url_encode(&q.target, view_of(context_id), false) < 0))
		r = fail(e, OSB_ERR_INVALID, "the context's id is missing or too long");
	if (r == 0)
		r = asking_do(s->client, &q, call, e);
	asking_done(&q);
	return r;
}

int osb_code_list(osb_sandbox *s, const char *language, const osb_call *call, char **ret_json,
		  osb_error *e)
{
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EXEC, "GET", "/code/contexts", call, &q, e);

	if (r == 0) {
		asking_param(&q, "language", language);
		r = asking_text(s->client, &q, call, ret_json, e);
	}
	asking_done(&q);
	return r;
}
