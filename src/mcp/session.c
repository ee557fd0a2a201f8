/*
 * mcp/session.c - see session.h.
 */
#include "mcp/session.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "mcp/mcp.h"
#include "mcp/pool.h"
#include "mcp/resources.h"
#include "mcp/tools.h"

struct session {
	struct mcp *mcp;
	pthread_mutex_t lock;
	struct list calls;
	unsigned users; /* its owner, and each call */
	bool initialized;
};

/* The newest first: it is offered to clients that ask for one that we do not know. */
static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

struct session *session_new(struct mcp *mcp)
{
	struct session *s = mem_new(struct session);

	s->mcp = mcp;
	s->users = 1;
	list_init(&s->calls);
	(void)pthread_mutex_init(&s->lock, NULL);
	return s;
}

static void leave(struct session *s)
{
	unsigned left;

	(void)pthread_mutex_lock(&s->lock);
	left = --s->users;
	(void)pthread_mutex_unlock(&s->lock);
	if (left)
		return;
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

void session_close(struct session *s)
{
	if (!s)
		return;
	(void)pthread_mutex_lock(&s->lock);
	list_each_safe (it, next, &s->calls)
		call_cancel(list_entry(it, struct call, of_session));
	(void)pthread_mutex_unlock(&s->lock);
	leave(s);
}

bool session_knows_version(struct view version)
{
	for (size_t i = 0; i < ARRAY_LEN(versions); i++)
		if (view_is(version, versions[i]))
			return true;
	return false;
}

void session_answers(struct session *s, struct call *c)
{
	(void)pthread_mutex_lock(&s->lock);
	list_remove(&c->of_session);
	(void)pthread_mutex_unlock(&s->lock);
}

void session_ended(struct session *s, struct call *c)
{
	call_free(c);
	leave(s);
}

/* ---- answers at once ---- */

static enum session_took send_all(struct json_writer *w, struct sink sink)
{
	if (json_writer_end(w) < 0)
		session_complain(sink, JSONRPC_INTERNAL_ERROR, "the answer is too large");
	else
		sink.send(sink.arg, buf_view(w->out), /* last= */ true);
	return SESSION_ANSWERED;
}

static enum session_took refuse(const struct json *id, struct sink sink, int code, const char *why)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(MCP_ANSWER_MAX);
	struct json_writer w;

	json_writer_init(&w, &out);
	jsonrpc_write_error(&w, id, code, why);
	return send_all(&w, sink);
}

void session_complain(struct sink sink, int code, const char *why)
{
	(void)refuse(NULL, sink, code, why);
}

static void write_capabilities(struct json_writer *w)
{
	static const char *const names[] = {"tools", "resources"};

	json_write_key(w, "capabilities");
	json_write_object(w);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		json_write_key(w, names[i]);
		json_write_object(w);
		json_put_bool(w, "listChanged", false);
		json_write_object_end(w);
	}
	json_write_object_end(w);
}

static void write_initialize(struct session *s, const struct jsonrpc_msg *m, struct json_writer *w)
{
	const char *version = versions[0];
	struct view asked = VIEW_NONE;

	(void)json_str(json_get(m->params, "protocolVersion"), &asked);
	for (size_t i = 0; i < ARRAY_LEN(versions); i++)
		if (view_is(asked, versions[i]))
			version = versions[i];
	s->initialized = true;
	json_write_object(w);
	json_put_cstr(w, "protocolVersion", version);
	write_capabilities(w);
	json_write_key(w, "serverInfo");
	json_write_object(w);
	json_put_cstr(w, "name", "OpenSandbox Sandbox");
	json_put_cstr(w, "version", OSB_VERSION);
	json_write_object_end(w);
	json_put_cstr(w, "instructions",
		      "Sandboxes are isolated machines for code that need not be trusted. Make one "
		      "with sandbox_create (or use one with sandbox_connect), then run commands "
		      "and code in it and read and write its files. End it with sandbox_kill; it "
		      "also ends by itself after its timeout, which sandbox_renew extends.");
	json_write_object_end(w);
}

static void write_nothing(struct session *s, const struct jsonrpc_msg *m, struct json_writer *w)
{
	(void)s;
	(void)m;
	json_write_object(w);
	json_write_object_end(w);
}

static void write_tools(struct session *s, const struct jsonrpc_msg *m, struct json_writer *w)
{
	(void)s;
	(void)m;
	tools_write_list(w);
}

static void write_resources(struct session *s, const struct jsonrpc_msg *m, struct json_writer *w)
{
	(void)m;
	resources_write_list(s->mcp, w);
}

static void write_templates(struct session *s, const struct jsonrpc_msg *m, struct json_writer *w)
{
	(void)s;
	(void)m;
	resources_write_templates(w);
}

/* ---- calls ---- */

/* With the lock held. */
static struct call *find_call(struct session *s, const struct json *id)
{
	osb_cleanup(buf_done) struct buf wanted = BUF_INIT(MCP_MESSAGE_MAX + 8u);
	osb_cleanup(buf_done) struct buf key = BUF_INIT(MCP_MESSAGE_MAX + 8u);

	if (!id || jsonrpc_id_key(id, &wanted) < 0)
		return NULL;
	list_each_safe (it, next, &s->calls) {
		struct call *c = list_entry(it, struct call, of_session);

		buf_clear(&key);
		if (jsonrpc_id_key(c->msg.id, &key) == 0 &&
		    view_eq(buf_view(&key), buf_view(&wanted)))
			return c;
	}
	return NULL;
}

static enum session_took start(struct session *s, struct jsonrpc_msg *m, const struct tool *tool,
			       struct sink sink)
{
	struct call *c = NULL;

	(void)pthread_mutex_lock(&s->lock);
	if (!find_call(s, m->id)) {
		c = call_new(s, s->mcp, m, sink);
		c->tool = tool;
		c->args = tool ? json_get(c->msg.params, "arguments") : NULL;
		list_push_back(&s->calls, &c->of_session);
		s->users++;
	}
	(void)pthread_mutex_unlock(&s->lock);
	if (!c)
		return refuse(m->id, sink, JSONRPC_INVALID_REQUEST, "this id is in use");
	if (pool_submit(s->mcp->pool, c))
		return SESSION_LATER;
	call_refuse(c, "Too many calls run at once: wait until some have ended, then try again.");
	session_ended(s, c);
	return SESSION_ANSWERED;
}

static enum session_took call_tool(struct session *s, struct jsonrpc_msg *m, struct sink sink)
{
	const struct tool *tool;
	char why[128];
	struct view name;

	if (!json_str(json_get(m->params, "name"), &name))
		return refuse(m->id, sink, JSONRPC_INVALID_PARAMS, "the name of a tool is missing");
	tool = tool_find(name);
	if (tool)
		return start(s, m, tool, sink);
	snprintf(why, sizeof(why), "Unknown tool: " VIEW_FMT, VIEW_ARG(view_first(name, 64)));
	return refuse(m->id, sink, JSONRPC_INVALID_PARAMS, why);
}

static enum session_took read_resource(struct session *s, struct jsonrpc_msg *m, struct sink sink)
{
	return start(s, m, /* tool= */ NULL, sink);
}

static void cancel(struct session *s, const struct jsonrpc_msg *m)
{
	struct call *c;

	(void)pthread_mutex_lock(&s->lock);
	c = find_call(s, json_get(m->params, "requestId"));
	if (c)
		call_cancel(c);
	(void)pthread_mutex_unlock(&s->lock);
}

/* ---- methods ---- */

static const struct method {
	const char *name;
	/* One of them: the result at once, or a call. */
	void (*write)(struct session *s, const struct jsonrpc_msg *m, struct json_writer *w);
	enum session_took (*start)(struct session *s, struct jsonrpc_msg *m, struct sink sink);
	bool before; /* may come before initialize */
} methods[] = {
	{"initialize", write_initialize, NULL, true},
	{"ping", write_nothing, NULL, true},
	{"tools/list", write_tools, NULL, false},
	{"tools/call", NULL, call_tool, false},
	{"resources/list", write_resources, NULL, false},
	{"resources/templates/list", write_templates, NULL, false},
	{"resources/read", NULL, read_resource, false},
};

static enum session_took handle(struct session *s, struct jsonrpc_msg *m, struct sink sink)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(MCP_ANSWER_MAX);
	const struct method *method = NULL;
	struct json_writer w;
	char why[128];

	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (view_is(m->method, methods[i].name))
			method = &methods[i];
	if (!method) {
		snprintf(why, sizeof(why), "Method not found: " VIEW_FMT,
			 VIEW_ARG(view_first(m->method, 64)));
		return refuse(m->id, sink, JSONRPC_METHOD_NOT_FOUND, why);
	}
	if (!method->before && !s->initialized)
		return refuse(m->id, sink, JSONRPC_INVALID_REQUEST, "send initialize first");
	if (method->start)
		return method->start(s, m, sink);
	json_writer_init(&w, &out);
	jsonrpc_write_result(&w, m->id);
	method->write(s, m, &w);
	json_write_object_end(&w);
	return send_all(&w, sink);
}

enum session_took session_take(struct session *s, struct view message, struct sink sink)
{
	struct err e = ERR_NONE;
	struct jsonrpc_msg m;
	enum session_took took = SESSION_NOTHING;
	int code = jsonrpc_parse(message, &m, &e);

	if (code)
		took = refuse(m.id, sink, code, e.msg);
	else if (m.kind == JSONRPC_REQUEST)
		took = handle(s, &m, sink);
	else if (m.kind == JSONRPC_NOTIFICATION && view_is(m.method, "notifications/cancelled"))
		cancel(s, &m);
	jsonrpc_msg_done(&m);
	return took;
}
