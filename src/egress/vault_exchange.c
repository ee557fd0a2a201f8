/*
 * egress/vault_exchange.c - one request of a sandbox to a bound host, with what the vault adds.
 *
 * The client's request is matched and rewritten first; then a connection to the server is taken up
 * or made; then both bodies are streamed, and the answer's headers are cleaned of secrets.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "codec/dns.h"
#include "codec/http1.h"
#include "egress/box.h"
#include "egress/egress.h"
#include "egress/lookup.h"
#include "egress/vault_int.h"
#include "egress/vault_request.h"
#include "net/connect.h"
#include "net/http_adopt.h"
#include "net/http_client.h"
#include "net/http_pool.h"
#include "net/http_server.h"
#include "net/relay.h"
#include "net/tls.h"

#define BODIES_MAX 16 /* of one sandbox that are collected at a time */

struct request {
	struct list link; /* in proxy->requests */
	struct vault_proxy *proxy;
	struct http_exchange *x; /* NULL once it is over */
	struct vault_held *held; /* the vault that it was matched against */
	struct vault_request_out out;
	struct buf body; /* that is being collected */
	bool collects;
	struct vault_dst dst;
	bool https;
	char name[256];
	char *keep_as;	       /* the connection's name while it rests */
	struct lookup *lookup; /* before anything else: where does the name lead? */
	struct connect *connect;
	struct tls_bridge *bridge;
	struct http_call *call;
	struct relay *relay;
	bool relays;	/* counts as a connection of the sandbox */
	bool reused;	/* the connection has had another life */
	bool streaming; /* the client's body is being read: it cannot be sent twice */
	bool answering; /* the head of the answer has been passed on */
};

static void end_body(struct request *r)
{
	buf_done(&r->body);
	if (r->collects)
		r->proxy->bodies_n--;
	r->collects = false;
}

static void request_free(struct request *r)
{
	list_remove(&r->link);
	lookup_free(r->lookup);
	connect_free(r->connect);
	tls_cancel(r->bridge);
	http_call_free(r->call);
	relay_free(r->relay);
	if (r->relays)
		r->proxy->conns_n--;
	vault_held_unref(r->held);
	end_body(r);
	free(r->keep_as);
	free(r);
}

void vault_requests_end(struct vault_proxy *p)
{
	list_each_safe (it, next, &p->requests) {
		struct request *r = list_entry(it, struct request, link);

		if (r->x) {
			http_on_gone(r->x, NULL, NULL);
			http_on_drained(r->x, NULL, NULL);
			http_reply_cut(r->x);
		}
		request_free(r);
	}
}

static void refuse(struct http_exchange *x, int status, const char *text)
{
	http_reply(x, status, "text/plain; charset=utf-8", view_of(text));
}

/* The exchange, which is the caller's to answer; nothing of the request is left. */
static struct http_exchange *let_go(struct request *r)
{
	struct http_exchange *x = r->x;

	http_on_gone(x, NULL, NULL);
	http_on_drained(x, NULL, NULL);
	request_free(r);
	return x;
}

static void fail(struct request *r, const char *message)
{
	char text[640]; /* a name, a sentence, and what an error says */

	snprintf(text, sizeof(text), "%s cannot be reached, or broke off: %s\n", r->name, message);
	refuse(let_go(r), 502, text);
}

/* ---- request: client to server ---- */

static void on_body(struct http_exchange *x, struct view bytes, void *arg)
{
	struct request *r = arg;

	if (bytes.len == 0)
		http_call_end(r->call);
	else if (!http_call_write(r->call, bytes))
		http_body_pause(x);
}

static void on_call_drained(void *arg)
{
	struct request *r = arg;

	if (r->streaming)
		http_body_resume(r->x);
}

static void send_request(struct request *r)
{
	const struct vault_request_out *o = &r->out;

	http_call_begin(r->call, http_head(r->x)->method, o->target, o->headers, o->headers_n,
			o->length);
	if (o->collected) {
		(void)http_call_write(r->call, o->body);
		http_call_end(r->call);
	} else if (o->length != 0 && !r->streaming) {
		r->streaming = true;
		http_body_stream(r->x, on_body, r);
	}
}

/* ---- answer: server to client ---- */

static void copy_headers(struct request *r, const struct http1_head *h)
{
	for (size_t i = 0; i < h->headers_n; i++) {
		osb_cleanup(buf_done) struct buf clean = BUF_INIT(128 * 1024);
		struct view value = h->headers[i].value;
		const char *name;
		int n;

		if (vault_request_stays(h, h->headers[i].name) ||
		    view_iis(h->headers[i].name, "Date"))
			continue;
		name = arena_str(http_arena(r->x), h->headers[i].name);
		n = name ? vault_redact(r->held->vault, value, &clean) : -E2BIG;
		/* What cannot be cleaned does not pass. */
		if (n >= 0)
			http_reply_header(r->x, name, n ? buf_view(&clean) : value);
	}
}

static void on_relayed(void *arg)
{
	request_free(arg);
}

/* The server agreed to switch: both sockets go to a relay, the exchange is over. */
static void become_relay(struct request *r, const struct http1_head *h)
{
	struct buf client_rest, server_rest;
	struct view upgrade = VIEW_NONE;
	struct err e = ERR_NONE;
	int client, server;

	server = http_call_upgrade(r->call, &server_rest);
	copy_headers(r, h);
	if (http1_header(h, "Upgrade", &upgrade))
		http_reply_header(r->x, "Upgrade", upgrade);
	http_reply_header(r->x, "Connection", VIEW("Upgrade"));
	http_on_gone(r->x, NULL, NULL);
	client = http_upgrade(take_ptr(r->x), 101, &client_rest);
	r->relays = true;
	r->proxy->conns_n++;
	if (relay_new(r->proxy->box->egress->loop, client, &client_rest, server, &server_rest,
		      /* idle_ms= */ 0, on_relayed, r, &r->relay, &e) < 0)
		request_free(r);
}

static void on_head(void *arg, const struct http1_head *h)
{
	struct request *r = arg;
	int64_t length = h->status == 204 || h->status == 304 ? 0 : -1;

	if (h->status == 101) {
		become_relay(r, h);
		return;
	}
	if (h->has_length)
		length = (int64_t)MIN(h->length, (uint64_t)INT64_MAX);
	copy_headers(r, h);
	r->answering = true;
	http_reply_begin(r->x, h->status, length);
}

static void on_answer_body(void *arg, struct view bytes)
{
	struct request *r = arg;

	if (!http_reply_write(r->x, bytes))
		http_call_pause(r->call);
}

static void on_reply_drained(struct http_exchange *x, void *arg)
{
	struct request *r = arg;

	(void)x;
	if (r->call)
		http_call_resume(r->call);
}

static void reach(struct request *r);

/* May it be asked twice?  A server that says nothing may have done it. */
static bool is_repeatable(const struct request *r)
{
	return !r->streaming && r->out.length == 0 &&
	       (view_is(http_head(r->x)->method, "GET") || http_is_head(r->x));
}

static void on_done(void *arg, int result, const struct err *e)
{
	struct request *r = arg;
	struct egress *g = r->proxy->box->egress;

	/* A server may close a connection that rests while the request is on its way to it. */
	if (result < 0 && r->reused && is_repeatable(r) && http_call_silent(r->call)) {
		http_call_free(take_ptr(r->call));
		reach(r);
		return;
	}
	if (result < 0 && !r->answering) {
		fail(r, e->msg);
		return;
	}
	if (result == 0 && http_call_reusable(r->call))
		http_pool_keep(g->pool, view_of(r->keep_as), take_ptr(r->call));
	if (result == 0)
		http_reply_end(let_go(r));
	else
		http_reply_cut(let_go(r));
}

static const struct http_call_events events = {
	.head = on_head,
	.body = on_answer_body,
	.drained = on_call_drained,
	.done = on_done,
};

/* ---- the way to the server ---- */

static void on_open(struct request *r, int fd)
{
	const struct http_target target = {.fd = fd, .keep_alive = true};
	struct err e = ERR_NONE;

	r->reused = false;
	if (http_call_new(r->proxy->box->egress->loop, &target, &events, r, &r->call, &e) < 0)
		fail(r, e.msg);
	else
		send_request(r);
}

static void on_encrypted(void *arg, int fd, const struct err *e)
{
	struct request *r = arg;

	r->bridge = NULL;
	if (fd < 0)
		fail(r, e->msg);
	else
		on_open(r, fd);
}

static void on_connected(void *arg, int fd, const struct err *e)
{
	struct request *r = arg;
	struct egress *g = r->proxy->box->egress;

	connect_free(take_ptr(r->connect));
	if (fd < 0) {
		fail(r, e->msg);
	} else if (!vault_is_elsewhere(fd)) {
		fd_close(fd);
		fail(r, "the address is one of this machine");
	} else if (r->https) {
		r->bridge = tls_connect(g->bridges, g->tls_client, fd, r->name, on_encrypted, r);
	} else {
		on_open(r, fd);
	}
}

static void reach(struct request *r)
{
	struct err e = ERR_NONE;

	if (vault_connect(r->proxy, &r->dst, on_connected, r, &r->connect, &e) < 0)
		fail(r, e.msg);
}

static void start(struct request *r)
{
	struct egress *g = r->proxy->box->egress;

	r->call = http_pool_take(g->pool, view_of(r->keep_as), !is_repeatable(r));
	if (!r->call) {
		reach(r);
		return;
	}
	r->reused = true;
	http_call_again(r->call, /* idle_timeout_ms= */ 0, &events, r);
	send_request(r);
}

/* ---- beginning ---- */

static void on_gone(struct http_exchange *x, void *arg)
{
	struct request *r = arg;

	(void)x;
	request_free(r);
}

/* A body to look into is needed whole; an empty piece is its end. */
static void on_piece(struct http_exchange *x, struct view piece, void *arg)
{
	struct request *r = arg;

	if (piece.len > 0 ? buf_append_view(&r->body, piece) < 0
			  : vault_request_body(x, buf_view(&r->body), &r->out) < 0) {
		refuse(let_go(r), 413, "the body is too large to look into\n");
		return;
	}
	if (piece.len == 0) {
		end_body(r);
		start(r);
	}
}

static struct request *request_new(struct vault_conn *c, struct http_exchange *x, const char *name)
{
	struct request *r = mem_new(struct request);

	r->proxy = c->proxy;
	r->x = x;
	r->held = vault_held_ref(c->proxy->held);
	r->body = BUF_SECRET(VAULT_REQUEST_BODY_MAX);
	r->dst = c->dst;
	r->https = c->https;
	memcpy(r->name, name, strlen(name) + 1);
	list_push_back(&c->proxy->requests, &r->link);
	http_on_gone(x, on_gone, r);
	http_on_drained(x, on_reply_drained, r);
	return r;
}

static void begin(struct vault_conn *c, struct http_exchange *x,
		  const struct vault_request_out *out, const char *name)
{
	struct request *r = request_new(c, x, name);

	r->out = *out;
	/* Never another sandbox's, another host's or another server's. */
	r->keep_as = mem_printf("%s %s %s %s %u", c->proxy->box->id, c->https ? "https" : "http",
				name, c->dst.ip, c->dst.port);
	if (out->body_kind == VAULT_BODY_NONE) {
		start(r);
	} else if (c->proxy->bodies_n >= BODIES_MAX) {
		refuse(let_go(r), 503, "too many bodies to look into at once\n");
	} else {
		r->collects = true;
		c->proxy->bodies_n++;
		http_body_stream(x, on_piece, r);
	}
}

/* ---- whose address is it? ---- */

static void handle(struct vault_conn *c, struct http_exchange *x, bool may_look);

static void on_found(void *arg, const struct dns_address *v, size_t n, const struct err *e)
{
	struct request *r = arg;
	struct http_exchange *x = r->x;
	struct vault_conn *c = http_owner(x);

	(void)e;
	for (size_t i = 0; i < n; i++)
		if (v[i].v6 == r->dst.v6 &&
		    memcmp(v[i].bytes, r->dst.bytes, r->dst.v6 ? 16 : 4) == 0)
			memcpy(c->proven, r->name, sizeof(c->proven));
	handle(c, let_go(r), /* may_look= */ false);
}

/* The sandbox has not asked for the name, or was forgotten to have. */
static bool look_up(struct vault_conn *c, struct http_exchange *x, const char *name)
{
	struct box *b = c->proxy->box;
	struct err e = ERR_NONE;
	struct request *r = request_new(c, x, name);

	if (lookup_new(b->egress, name, b->settings->dns_upstream_timeout, on_found, r, &r->lookup,
		       &e) == 0)
		return true;
	(void)let_go(r);
	return false;
}

static void handle(struct vault_conn *c, struct http_exchange *x, bool may_look)
{
	struct vault_request_out out = {0};
	const char *why = NULL;
	char name[256];
	int status;

	if (c && c->proxy && c->proxy->lost.len > 0) {
		vault_note(c->proxy, &c->dst, c->name, c->https, VAULT_LOST);
		refuse(x, 503, VAULT_LOST "\n");
		return;
	}
	if (!c || !c->proxy || c->proxy->broken || !c->proxy->held) {
		refuse(x, 503, "the credential vault is not available\n");
		return;
	}
	status = vault_request_make(c, x, name, &out, &why);
	if (status == VAULT_REQUEST_ASTRAY && may_look && look_up(c, x, name))
		return;
	vault_note(c->proxy, &c->dst, name, c->https, status ? why : NULL);
	if (status)
		refuse(x, status, why);
	else
		begin(c, x, &out, name);
}

void vault_exchange(struct http_exchange *x, void *app)
{
	(void)app;
	handle(http_owner(x), x, /* may_look= */ true);
}
