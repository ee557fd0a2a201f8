/*
 * net/ws_connect.c - asks for an upgrade and believes only the right answer.
 */
#include "net/ws_connect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"
#include "codec/base64.h"

#define KEY_BYTES 16

struct ws_connect {
	struct loop *loop;
	struct ws_options ws;
	const struct ws_events *events;
	void *events_arg;
	ws_connect_fn *fn;
	void *arg;
	struct http_call *call;
	char accept[29]; /* what the server must answer */
	bool told;
};

/* Why the answer is not the one of a WebSocket server, or NULL. */
static const char *objection(const struct ws_connect *c, const struct http1_head *h)
{
	struct view v = VIEW_NONE;

	if (h->status != 101)
		return "the server does not switch to WebSocket";
	if (!h->upgrade || !http1_header(h, "Upgrade", &v) || !view_iis(v, "websocket"))
		return "the server switched to another protocol";
	if (!http1_header(h, "Sec-WebSocket-Accept", &v) || !view_is(v, c->accept))
		return "the server's Sec-WebSocket-Accept is wrong";
	/* None is offered, so none may be agreed on. */
	if (http1_header(h, "Sec-WebSocket-Extensions", &v))
		return "the server uses a WebSocket extension";
	return NULL;
}

static void tell_failure(struct ws_connect *c, int code, const char *what)
{
	struct err e = ERR_NONE;

	if (c->told)
		return;
	c->told = true;
	(void)err_set(&e, code, "%s", what);
	c->fn(c->arg, NULL, &e);
}

static void on_head(void *arg, const struct http1_head *h)
{
	struct ws_connect *c = arg;
	const char *why = objection(c, h);
	struct err none = ERR_NONE;
	struct buf rest;
	int fd;

	if (why) {
		tell_failure(c, -EPROTO, why);
		return;
	}
	c->told = true;
	fd = http_call_upgrade(c->call, &rest);
	c->fn(c->arg,
	      ws_conn_new(c->loop, fd, &rest, /* is_client= */ true, &c->ws, c->events,
			  c->events_arg),
	      &none);
}

static void on_body(void *arg, struct view bytes)
{
}

static void on_done(void *arg, int result, const struct err *e)
{
	tell_failure(arg, result ? result : -EPROTO, e->msg);
}

static const struct http_call_events call_events = {
	.head = on_head, .body = on_body, .done = on_done};

static int ask(struct ws_connect *c, const struct ws_connect_options *o, struct err *e)
{
	size_t n = 0;
	unsigned char bytes[KEY_BYTES];
	char key[BASE64_LEN(KEY_BYTES) + 1];
	struct http1_header *list;

	if (o->headers_n > HTTP1_MAX_HEADERS)
		return err_set(e, -E2BIG, "too many headers");
	rand_bytes(bytes, sizeof(bytes));
	base64_format(bytes, sizeof(bytes), key);
	ws_accept_key(view_of(key), c->accept);
	list = mem_new_array(struct http1_header, o->headers_n + 4);
	list[n++] = (struct http1_header){VIEW("Host"), o->host};
	list[n++] = (struct http1_header){VIEW("Upgrade"), VIEW("websocket")};
	list[n++] = (struct http1_header){VIEW("Sec-WebSocket-Version"), VIEW("13")};
	list[n++] = (struct http1_header){VIEW("Sec-WebSocket-Key"), view_of(key)};
	for (size_t i = 0; i < o->headers_n; i++)
		list[n++] = o->headers[i];
	http_call_begin(c->call, VIEW("GET"), o->path, list, n, /* length= */ 0);
	http_call_end(c->call);
	free(list);
	return 0;
}

int ws_connect_new(struct loop *l, const struct ws_connect_options *o, ws_connect_fn *fn, void *arg,
		   struct ws_connect **ret, struct err *e)
{
	struct ws_connect *c = mem_new(struct ws_connect);
	int r;

	c->loop = l;
	c->ws = o->ws;
	c->events = o->events;
	c->events_arg = o->events_arg;
	c->fn = fn;
	c->arg = arg;
	r = http_call_new(l, &o->target, &call_events, c, &c->call, e);
	r = r ? r : ask(c, o, e);
	if (r < 0) {
		ws_connect_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

void ws_connect_free(struct ws_connect *c)
{
	if (!c)
		return;
	http_call_free(c->call);
	free(c);
}
