/*
 * mcp/call.c - see call.h.
 */
#include "mcp/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "mcp/mcp.h"
#include "mcp/registry.h"
#include "mcp/resources.h"
#include "mcp/session.h"
#include "mcp/tools.h"

#define PROGRESS_EVERY_US 250000

struct call *call_new(struct session *s, struct mcp *mcp, struct jsonrpc_msg *msg_taken,
		      struct sink sink)
{
	struct call *c = mem_new(struct call);

	c->session = s;
	c->mcp = mcp;
	c->sink = sink;
	c->msg = *msg_taken;
	*msg_taken = (struct jsonrpc_msg){.kind = JSONRPC_REQUEST};
	c->token = json_get(json_get(c->msg.params, "_meta"), "progressToken");
	c->cancel = osb_cancel_new();
	c->how.cancel = c->cancel;
	list_init(&c->of_session);
	list_init(&c->of_pool);
	arena_init(&c->arena, 4u * MCP_MESSAGE_MAX);
	buf_init(&c->result, MCP_ANSWER_MAX / 2);
	buf_init(&c->pictures, MCP_ANSWER_MAX / 4);
	json_writer_init(&c->w, &c->result);
	return c;
}

void call_free(struct call *c)
{
	registry_give_back(c->mcp->registry, c->box);
	osb_cancel_free(c->cancel);
	arena_done(&c->arena);
	buf_done(&c->result);
	buf_done(&c->pictures);
	jsonrpc_msg_done(&c->msg);
	free(c);
}

void call_cancel(struct call *c)
{
	atomic_store(&c->cancelled, true);
	osb_cancel_now(c->cancel);
}

/* ---- the answer ---- */

static void put_content(struct json_writer *w, struct call *c)
{
	struct view rest = buf_view(&c->pictures), picture;

	json_write_key(w, "content");
	json_write_array(w);
	json_write_object(w);
	json_put_cstr(w, "type", "text");
	json_put_string(w, "text", c->why[0] ? view_of(c->why) : buf_view(&c->result));
	json_write_object_end(w);
	while (!c->why[0] && view_split(&rest, '\n', &picture))
		json_write_text(w, picture);
	json_write_array_end(w);
}

static void put_tool_result(struct json_writer *w, struct call *c)
{
	json_write_object(w);
	put_content(w, c);
	if (!c->why[0]) {
		json_write_key(w, "structuredContent");
		json_write_text(w, buf_view(&c->result));
	}
	json_put_bool(w, "isError", c->why[0] != '\0');
	json_write_object_end(w);
}

static void answer(struct call *c)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(MCP_ANSWER_MAX * 2u);
	struct json_writer w;

	session_answers(c->session, c);
	if (atomic_load(&c->cancelled)) {
		c->sink.send(c->sink.arg, VIEW_NONE, /* last= */ true);
		return;
	}
	if (!c->why[0] && json_writer_end(&c->w) < 0)
		call_fail(c, "The result is too large; ask for less of it.");
	json_writer_init(&w, &out);
	if (!c->tool && c->why[0]) {
		jsonrpc_write_error(&w, c->msg.id, c->code, c->why);
	} else {
		jsonrpc_write_result(&w, c->msg.id);
		if (c->tool)
			put_tool_result(&w, c);
		else
			json_write_text(&w, buf_view(&c->result));
		json_write_object_end(&w);
	}
	if (json_writer_end(&w) < 0) {
		buf_clear(&out);
		json_writer_init(&w, &out);
		jsonrpc_write_error(&w, c->msg.id, JSONRPC_INTERNAL_ERROR,
				    "the result is too large");
	}
	c->sink.send(c->sink.arg, buf_view(&out), /* last= */ true);
}

static int run_tool(struct call *c)
{
	osb_cleanup(buf_done) struct buf why = BUF_INIT(sizeof(c->why) - 64);

	if (shape_check(c->tool->input, 0, c->args, &why) < 0)
		return call_fail(c, "%s: %s.", c->tool->name, buf_str(&why));
	return c->tool->run(c);
}

void call_run(struct call *c)
{
	c->code = JSONRPC_INTERNAL_ERROR;
	if (!atomic_load(&c->cancelled)) {
		int r = c->tool ? run_tool(c) : resources_read(c);

		if (r < 0 && !c->why[0])
			call_fail(c, "It failed, and nobody said why.");
	}
	answer(c);
}

void call_refuse(struct call *c, const char *why)
{
	c->code = JSONRPC_INTERNAL_ERROR;
	call_fail(c, "%s", why);
	answer(c);
}

/* ---- failures ---- */

int call_fail(struct call *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(c->why, sizeof(c->why), fmt, ap);
	va_end(ap);
	return -1;
}

static const char *advice(const struct call *c)
{
	switch (c->e.code) {
	case OSB_ERR_CONNECT:
		return "The OpenSandbox server cannot be reached: check that it runs, and --domain "
		       "or OPEN_SANDBOX_DOMAIN of opensandbox-mcp.";
	case OSB_ERR_UNAUTHORIZED:
		return "Check --api-key or OPEN_SANDBOX_API_KEY of opensandbox-mcp.";
	case OSB_ERR_NOT_FOUND:
		return "Check the ids and paths: sandbox_list shows the sandboxes, file_list what "
		       "is in a directory.";
	case OSB_ERR_TIMEOUT:
		return "Try again; long commands can be run with background=true.";
	case OSB_ERR_BUSY:
		return "Wait a little, then try again.";
	case OSB_ERR_ENDED:
		return "Create another sandbox with sandbox_create.";
	case OSB_ERR_UNSUPPORTED:
		return "This server cannot do that.";
	default:
		return "";
	}
}

int call_fail_osb(struct call *c)
{
	size_t n = strlen(c->e.message);
	bool full_stop = n && c->e.message[n - 1] == '.';

	return call_fail(c, "%s: %s%s %s", osb_code_name(c->e.code), c->e.message,
			 full_stop ? "" : ".", advice(c));
}

int call_check(struct call *c, int result)
{
	return result < 0 ? call_fail_osb(c) : 0;
}

/* ---- progress ---- */

void call_progress(struct call *c, const char *message, unsigned flags)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(64u << 10);
	uint64_t now = clock_mono_us();
	struct json_writer w;

	if (!c->token || atomic_load(&c->cancelled) ||
	    (!(flags & CALL_PROGRESS_ALWAYS) && now - c->progress_us < PROGRESS_EVERY_US))
		return;
	c->progress_us = now;
	json_writer_init(&w, &out);
	jsonrpc_write_notification(&w, "notifications/progress");
	json_write_object(&w);
	json_write_key(&w, "progressToken");
	json_write_json(&w, c->token);
	json_put_int(&w, "progress", (int64_t)++c->progress_n);
	json_put_string(&w, "message", view_first(view_of(message), 1000));
	json_write_object_end(&w);
	json_write_object_end(&w);
	if (json_writer_end(&w) == 0)
		c->sink.send(c->sink.arg, buf_view(&out), /* last= */ false);
}

/* ---- sandboxes ---- */

osb_sandbox *call_connect(struct call *c, const char *id)
{
	osb_sandbox *s = NULL;

	c->box = registry_find(c->mcp->registry, id);
	if (c->box)
		return registry_sandbox(c->box);
	if (call_check(c, osb_sandbox_open(c->mcp->client, id, &s, &c->e)) < 0)
		return NULL;
	if (call_check(c, osb_sandbox_wait_ready(s, 30000, &c->how, &c->e)) < 0) {
		osb_sandbox_free(s);
		return NULL;
	}
	c->box = registry_add(c->mcp->registry, s);
	if (c->box)
		return registry_sandbox(c->box);
	call_fail(c, "Too many sandboxes are connected: end some with sandbox_kill.");
	return NULL;
}

osb_sandbox *call_sandbox(struct call *c)
{
	const char *id = arg_str(c, "sandbox_id", "");

	c->box = registry_find(c->mcp->registry, id);
	if (c->box)
		return registry_sandbox(c->box);
	if (arg_bool(c, "connect_if_missing", false))
		return call_connect(c, id);
	call_fail(c,
		  "The sandbox '%.80s' is not connected. Call sandbox_connect first, or set "
		  "connect_if_missing to true.",
		  id);
	return NULL;
}

static void free_sandbox(void *s)
{
	osb_sandbox_free(s);
}

osb_sandbox *call_any_sandbox(struct call *c)
{
	const char *id = arg_str(c, "sandbox_id", "");
	osb_sandbox *s = NULL;

	c->box = registry_find(c->mcp->registry, id);
	if (c->box)
		return registry_sandbox(c->box);
	if (call_check(c, osb_sandbox_open(c->mcp->client, id, &s, &c->e)) < 0)
		return NULL;
	/* Not connected: it goes when the call's memory does. */
	arena_defer(&c->arena, free_sandbox, s);
	return s;
}

/* ---- arguments ---- */

const char *arg_str_in(struct call *c, const struct json *object, const char *name,
		       const char *otherwise)
{
	struct view text;
	char *copy;

	if (!json_str(json_get(object, name), &text))
		return otherwise;
	/* The arena is larger than any message: there is always room. */
	copy = arena_str(&c->arena, text);
	return copy ? copy : otherwise;
}

const char *arg_str(struct call *c, const char *name, const char *otherwise)
{
	return arg_str_in(c, c->args, name, otherwise);
}

struct view arg_text(const struct json *object, const char *name)
{
	struct view text = VIEW_NONE;

	(void)json_str(json_get(object, name), &text);
	return text;
}

int64_t arg_int(const struct json *object, const char *name, int64_t otherwise)
{
	(void)json_int(json_get(object, name), &otherwise);
	return otherwise;
}

double arg_number(const struct json *object, const char *name, double otherwise)
{
	(void)json_number(json_get(object, name), &otherwise);
	return otherwise;
}

bool arg_bool(const struct call *c, const char *name, bool otherwise)
{
	(void)json_bool(json_get(c->args, name), &otherwise);
	return otherwise;
}

const char *const *arg_strings(struct call *c, const struct json *object, const char *name)
{
	const struct json *v = json_get(object, name);
	size_t n = json_len(v);
	const char **list = v ? arena_alloc(&c->arena, (n + 1) * sizeof(*list)) : NULL;
	struct view text;

	for (size_t i = 0; list && i < n; i++) {
		if (!json_str(json_at(v, i), &text))
			text = VIEW_NONE;
		list[i] = arena_str(&c->arena, text);
	}
	return list;
}

osb_pair *arg_pairs(struct call *c, const struct json *object, const char *name, size_t *ret_n)
{
	const struct json *v = json_get(object, name), *value;
	size_t n = json_len(v), i = 0;
	osb_pair *pairs = n ? arena_alloc(&c->arena, n * sizeof(*pairs)) : NULL;
	struct view key, text;
	void *it = NULL;

	while (pairs && i < n && json_next(v, &it, &key, &value)) {
		if (!json_str(value, &text))
			text = VIEW_NONE;
		pairs[i].name = arena_str(&c->arena, key);
		pairs[i++].value = arena_str(&c->arena, text);
	}
	*ret_n = i;
	return pairs;
}

/* ---- members ---- */

void put_null(struct json_writer *w, const char *key)
{
	json_write_key(w, key);
	json_write_null(w);
}

void put_text(struct json_writer *w, const char *key, const char *text)
{
	if (text)
		json_put_cstr(w, key, text);
	else
		put_null(w, key);
}

void put_number(struct json_writer *w, const char *key, double n)
{
	json_write_key(w, key);
	json_write_double(w, n);
}

int call_status(struct call *c, const char *word)
{
	json_write_object(&c->w);
	json_put_cstr(&c->w, "status", word);
	json_write_object_end(&c->w);
	return 0;
}
