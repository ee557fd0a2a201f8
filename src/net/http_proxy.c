/*
 * net/http_proxy.c - couples a server exchange with a client call.
 *
 * A proxy lives from http_proxy() until the exchange is answered, its client has gone, or the
 * relay that an upgrade became has ended.
 */
#include "net/http_proxy.h"

#include <errno.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "net/http_pool.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/relay.h"

#define CONTINUE_MS 1000 /* how long a server may think about Expect: 100-continue */

struct http_proxies {
	struct list members;
	struct http_pool *pool; /* made when it is needed */
};

struct proxy {
	struct list link;
	struct http_proxies *all;
	struct loop *loop;
	struct http_exchange *x; /* NULL once it is over */
	struct http_call *call;
	struct relay *relay;
	struct loop_timer *continue_timer; /* or NULL */
	void (*failed)(struct http_exchange *x, int code, const char *message);
	struct view (*rewrite)(struct http_exchange *x, struct view name, struct view value);
	struct view keep_as; /* in the exchange's arena */
	uint64_t idle_ms;    /* once the head has come */
	bool head_timeout;
	bool hides_server;
	bool again;	 /* on a kept connection */
	bool repeatable; /* asking twice does no harm */
	bool answering;	 /* the head of the answer has been passed on */
	bool reads_body; /* the request's body is asked for */
	bool upgrades;
};

static void proxy_free(struct proxy *p)
{
	list_remove(&p->link);
	http_call_free(p->call);
	relay_free(p->relay);
	loop_timer_free(p->continue_timer);
	free(p);
}

struct http_proxies *http_proxies_new(void)
{
	struct http_proxies *all = mem_new(struct http_proxies);

	list_init(&all->members);
	return all;
}

void http_proxies_free(struct http_proxies *all)
{
	if (!all)
		return;
	list_each_safe (it, next, &all->members)
		proxy_free(list_entry(it, struct proxy, link));
	http_pool_free(all->pool);
	free(all);
}

/* ---- request: client to upstream ---- */

static void on_request_body(struct http_exchange *x, struct view bytes, void *arg)
{
	struct proxy *p = arg;

	if (bytes.len == 0)
		http_call_end(p->call);
	else if (!http_call_write(p->call, bytes))
		http_body_pause(x);
}

static void read_request_body(struct proxy *p)
{
	if (p->reads_body)
		return;
	p->reads_body = true;
	if (p->continue_timer)
		loop_timer_stop(p->continue_timer);
	http_body_stream(p->x, on_request_body, p);
}

static void on_call_drained(void *arg)
{
	struct proxy *p = arg;

	http_body_resume(p->x);
}

static void on_call_interim(void *arg, int status)
{
	if (status == 100)
		read_request_body(arg);
}

static void on_continue_timer(void *arg)
{
	read_request_body(arg);
}

/* ---- answer: upstream to client ---- */

/* What Connection names stays here; most messages name nothing that is not known anyway. */
static bool names_headers(const struct http1_head *h)
{
	struct view rest, token;

	for (size_t i = 0; i < h->headers_n; i++) {
		if (!view_iis(h->headers[i].name, "Connection"))
			continue;
		rest = h->headers[i].value;
		while (view_split(&rest, ',', &token)) {
			token = view_trim(token);
			if (!view_iis(token, "keep-alive") && !view_iis(token, "close") &&
			    !view_iis(token, "upgrade"))
				return true;
		}
	}
	return false;
}

static bool is_named(const struct http1_head *h, struct view name)
{
	char text[64];

	if (name.len >= sizeof(text))
		return false;
	memcpy(text, name.p, name.len);
	text[name.len] = '\0';
	for (size_t i = 0; i < h->headers_n; i++)
		if (view_iis(h->headers[i].name, "Connection") &&
		    http1_list_has(h->headers[i].value, text))
			return true;
	return false;
}

/* Is `name` for the next hop alone: by its nature, or because Connection says so? */
static bool stays_here(const struct http1_head *h, struct view name, bool names)
{
	return http1_hop_by_hop(name) || view_iis(name, "Content-Length") ||
	       (names && is_named(h, name));
}

static bool is_rewritten(struct view name)
{
	return view_iis(name, "Location") || view_iis(name, "Set-Cookie") ||
	       view_iis(name, "Service-Worker-Allowed");
}

static void copy_answer_headers(struct proxy *p, const struct http1_head *h)
{
	bool names = names_headers(h);

	for (size_t i = 0; i < h->headers_n; i++) {
		struct http1_header f = h->headers[i];

		/* The server dates its answers itself. */
		if (stays_here(h, f.name, names) || view_iis(f.name, "Date") ||
		    (p->hides_server && view_iis(f.name, "Server")))
			continue;
		if (p->rewrite && is_rewritten(f.name))
			f.value = p->rewrite(p->x, f.name, f.value);
		if (f.value.p)
			http_reply_copy(p->x, &f);
	}
}

static void on_relay_done(void *arg)
{
	proxy_free(arg);
}

/* The upstream agreed to switch: both sockets go to a relay, the exchange is over. */
static void become_relay(struct proxy *p, const struct http1_head *h)
{
	struct buf client_rest, server_rest;
	struct view upgrade = VIEW_NONE;
	struct err e = ERR_NONE;
	int client, server;

	server = http_call_upgrade(p->call, &server_rest);
	copy_answer_headers(p, h);
	if (http1_header(h, "Upgrade", &upgrade))
		http_reply_header(p->x, "Upgrade", upgrade);
	http_reply_header(p->x, "Connection", VIEW("Upgrade"));
	client = http_upgrade(p->x, 101, &client_rest);
	p->x = NULL;
	if (relay_new(p->loop, client, &client_rest, server, &server_rest, /* idle_ms= */ 0,
		      on_relay_done, p, &p->relay, &e) < 0)
		proxy_free(p);
}

static int64_t answer_length(const struct proxy *p, const struct http1_head *h)
{
	if (h->has_length)
		return (int64_t)MIN(h->length, (uint64_t)INT64_MAX);
	return h->status == 204 || h->status == 304 ? 0 : -1;
}

static void on_call_head(void *arg, const struct http1_head *h)
{
	struct proxy *p = arg;

	if (p->continue_timer)
		loop_timer_stop(p->continue_timer);
	if (p->head_timeout)
		http_call_set_idle(p->call, p->idle_ms);
	if (h->status == 101) {
		become_relay(p, h);
		return;
	}
	copy_answer_headers(p, h);
	p->answering = true;
	http_reply_begin(p->x, h->status, answer_length(p, h));
}

static void on_call_body(void *arg, struct view bytes)
{
	struct proxy *p = arg;

	if (!http_reply_write(p->x, bytes))
		http_call_pause(p->call);
}

static void on_reply_drained(struct http_exchange *x, void *arg)
{
	struct proxy *p = arg;

	http_call_resume(p->call);
}

/* Keeps the connection if it can be. */
static void leave_call(struct proxy *p)
{
	struct http_call *c = p->call;

	if (p->keep_as.len == 0 || !http_call_reusable(c))
		return;
	p->call = NULL;
	if (!p->all->pool)
		p->all->pool = http_pool_new(p->loop);
	http_pool_keep(p->all->pool, p->keep_as, c);
}

static void on_call_done(void *arg, int result, const struct err *e)
{
	struct proxy *p = arg;
	struct http_exchange *x = p->x;
	void (*failed)(struct http_exchange *, int, const char *) = p->failed;
	bool answering = p->answering;

	/* The server may have closed it just then. */
	if (result < 0 && p->again && p->repeatable && http_call_silent(p->call))
		result = -ESTALE;
	/* The exchange's callbacks must not find us any more. */
	http_on_gone(x, NULL, NULL);
	http_on_drained(x, NULL, NULL);
	leave_call(p);
	proxy_free(p);
	if (result == 0)
		http_reply_end(x);
	else if (answering)
		http_reply_cut(x);
	else
		failed(x, result, e->msg);
}

static const struct http_call_events call_events = {
	.head = on_call_head,
	.body = on_call_body,
	.drained = on_call_drained,
	.done = on_call_done,
	.interim = on_call_interim,
};

static void on_client_gone(struct http_exchange *x, void *arg)
{
	proxy_free(arg);
}

/* ---- beginning ---- */

static bool is_dropped(const struct http_proxy_options *o, struct view name)
{
	for (const char *const *d = o->drop_headers; d && *d; d++)
		if (view_iis(name, *d))
			return true;
	return false;
}

/* The headers to ask with, in the exchange's arena. */
static struct http1_header *request_headers(struct proxy *p, const struct http_proxy_options *o,
					    size_t *ret_n)
{
	const struct http1_head *h = http_head(p->x);
	bool names = names_headers(h);
	struct view upgrade = VIEW_NONE;
	struct http1_header *list;
	size_t n = 0;

	list = arena_alloc(http_arena(p->x), (h->headers_n + o->add_headers_n + 1) * sizeof(*list));
	if (!list)
		return NULL;
	for (size_t i = 0; i < h->headers_n; i++)
		if (!stays_here(h, h->headers[i].name, names) && !is_dropped(o, h->headers[i].name))
			list[n++] = h->headers[i];
	if (p->upgrades && http1_header(h, "Upgrade", &upgrade))
		list[n++] = (struct http1_header){VIEW("Upgrade"), upgrade};
	for (size_t i = 0; i < o->add_headers_n; i++)
		list[n++] = o->add_headers[i];
	*ret_n = n;
	return list;
}

static bool has_body(const struct http1_head *h)
{
	return h->chunked || (h->has_length && h->length > 0);
}

static void begin_call(struct proxy *p, const struct http_proxy_options *o,
		       const struct http1_header *headers, size_t headers_n)
{
	const struct http1_head *h = http_head(p->x);
	int64_t length = h->chunked ? -1 : (int64_t)MIN(h->length, (uint64_t)INT64_MAX);

	http_call_begin(p->call, h->method, o->path, headers, headers_n, has_body(h) ? length : 0);
	http_on_gone(p->x, on_client_gone, p);
	http_on_drained(p->x, on_reply_drained, p);
	if (has_body(h) && h->expect_continue) {
		p->continue_timer = loop_timer_new(p->loop, on_continue_timer, p);
		loop_timer_start(p->continue_timer, CONTINUE_MS);
	} else if (has_body(h)) {
		read_request_body(p);
	}
}

/* May the request be asked a second time, when the first had no answer? */
static bool is_repeatable(const struct http1_head *h)
{
	return !has_body(h) && !h->upgrade &&
	       (view_is(h->method, "GET") || view_is(h->method, "HEAD") ||
		view_is(h->method, "OPTIONS"));
}

static struct proxy *proxy_new(struct loop *l, struct http_proxies *all, struct http_exchange *x,
			       const struct http_proxy_options *o)
{
	const struct http1_head *h = http_head(x);
	struct proxy *p = mem_new(struct proxy);

	p->loop = l;
	p->all = all;
	p->x = x;
	p->failed = o->failed;
	p->rewrite = o->rewrite;
	p->hides_server = o->hides_server;
	p->repeatable = is_repeatable(h);
	/* A body before the switch would have to be sent to either protocol: not offered. */
	p->upgrades = h->upgrade && !h->chunked && h->length == 0;
	list_push_back(&all->members, &p->link);
	return p;
}

/* `kept` is a connection that rested, or NULL: then one is made. */
static void run(struct proxy *p, const struct http_proxy_options *o, struct http_call *kept)
{
	struct http_target target = o->target;
	const struct http1_header *headers;
	struct http_exchange *x = p->x;
	struct err e = ERR_NONE;
	size_t headers_n = 0;
	int r = 0;

	p->call = kept;
	p->again = kept != NULL;
	target.keep_alive = o->keep_as.len > 0 && !p->upgrades;
	target.parsed = true;
	p->head_timeout = o->head_timeout_ms > 0;
	p->idle_ms = o->target.idle_timeout_ms;
	if (p->head_timeout)
		target.idle_timeout_ms = o->head_timeout_ms;
	headers = request_headers(p, o, &headers_n);
	if (!headers || arena_view(http_arena(x), o->keep_as, &p->keep_as) < 0) {
		if (!kept)
			fd_close(target.fd);
		r = err_set(&e, -E2BIG, "the request's headers are too large");
	} else if (kept) {
		http_call_again(kept, target.idle_timeout_ms, &call_events, p);
	} else {
		r = http_call_new(p->loop, &target, &call_events, p, &p->call, &e);
	}
	if (r < 0) {
		proxy_free(p);
		o->failed(x, r, e.msg);
		return;
	}
	begin_call(p, o, headers, headers_n);
}

void http_proxy(struct loop *l, struct http_proxies *all, struct http_exchange *x,
		const struct http_proxy_options *o)
{
	run(proxy_new(l, all, x, o), o, /* kept= */ NULL);
}

bool http_proxy_again(struct loop *l, struct http_proxies *all, struct http_exchange *x,
		      const struct http_proxy_options *o)
{
	const struct http1_head *h = http_head(x);
	struct http_call *kept = NULL;

	/* A connection that changes its protocol is not given back. */
	if (all->pool && !h->upgrade)
		kept = http_pool_take(all->pool, o->keep_as, !is_repeatable(h));
	if (kept)
		run(proxy_new(l, all, x, o), o, kept);
	return kept != NULL;
}
