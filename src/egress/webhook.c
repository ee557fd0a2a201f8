/*
 * egress/webhook.c - a queue of deliveries, a few of which are under way.
 */
#include "egress/webhook.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/dns.h"
#include "codec/http_url.h"
#include "codec/json_writer.h"
#include "codec/rfc3339.h"
#include "egress/egress.h"
#include "egress/lookup.h"
#include "egress/vault_int.h"
#include "net/connect.h"
#include "net/http_client.h"
#include "net/loop.h"
#include "net/tls.h"
#include "policy/net_special.h"
#include "policy/net_table.h"
#include "sys/net_mark.h"

#define TIMEOUT_MS    5000
#define TRIES	      4
#define AGAIN_MS      1000 /* doubled with each try */
#define RUNNING_MAX   16
#define QUEUE_MAX     1024 /* all sandboxes' */
#define QUEUE_PER_BOX 128
#define BODY_MAX      2048
#define SOURCE	      "opensandbox-egress"

struct delivery {
	struct list link;
	struct webhook *webhook;
	char *url; /* what `to` has views of */
	struct http_url to;
	bool trusted, running;
	char *box;
	struct buf body;
	unsigned tries;
	int status; /* of the answer; 0 = none yet */
	struct loop_timer *timer;
	/* The stages of one try; at most one is there at a time. */
	struct lookup *lookup;
	struct connect *connect;
	struct tls_bridge *bridge;
	struct http_call *call;
};

struct webhook {
	struct egress *egress;
	struct list queue; /* oldest first */
	size_t n, running;
	uint64_t dropped;
};

struct webhook *webhook_new(struct egress *g)
{
	struct webhook *w = mem_new(struct webhook);

	w->egress = g;
	list_init(&w->queue);
	return w;
}

int webhook_check(const char *url, struct err *e)
{
	struct http_url to;

	return http_url_parse(view_of(url), &to, e);
}

/* ---- deliveries ---- */

static void end_stages(struct delivery *d)
{
	lookup_free(take_ptr(d->lookup));
	connect_free(take_ptr(d->connect));
	tls_cancel(take_ptr(d->bridge));
	http_call_free(take_ptr(d->call));
}

static void delivery_free(struct delivery *d)
{
	struct webhook *w = d->webhook;

	end_stages(d);
	list_remove(&d->link);
	w->n--;
	w->running -= d->running;
	loop_timer_free(d->timer);
	buf_done(&d->body);
	free(d->url);
	free(d->box);
	free(d);
}

void webhook_free(struct webhook *w)
{
	if (!w)
		return;
	list_each_safe (it, tmp, &w->queue)
		delivery_free(list_entry(it, struct delivery, link));
	free(w);
}

static void begin_next(struct webhook *w);

static void delivery_over(struct delivery *d)
{
	struct webhook *w = d->webhook;

	delivery_free(d);
	begin_next(w);
}

/* ---- one try ---- */

static void give_up(struct delivery *d, const char *why)
{
	log_line(LOG_WARN, "the webhook was not told, giving up", LOG_S("box", d->box),
		 LOG_S("err", why));
	delivery_over(d);
}

static void try_failed(struct delivery *d, const char *why)
{
	if (d->tries >= TRIES) {
		give_up(d, why);
		return;
	}
	log_line(LOG_DEBUG, "the webhook was not told, trying again", LOG_S("box", d->box),
		 LOG_S("err", why));
	end_stages(d);
	/* The timer knows by the status what it is for. */
	d->status = -1;
	loop_timer_start(d->timer, (uint64_t)AGAIN_MS << (d->tries - 1));
}

static void on_head(void *arg, const struct http1_head *head)
{
	struct delivery *d = arg;

	d->status = head->status;
}

static void on_body(void *arg, struct view bytes)
{
	(void)arg;
	(void)bytes;
}

static bool is_well(int status)
{
	return status >= 200 && status < 300;
}

static void on_done(void *arg, int result, const struct err *e)
{
	struct delivery *d = arg;
	char text[40];

	/* Whoever has said that it is well need not say more. */
	if (is_well(d->status)) {
		delivery_over(d);
	} else if (result == 0 && d->status < 500) {
		log_line(LOG_WARN, "the webhook was refused, ignoring it", LOG_S("box", d->box),
			 LOG_I("status", d->status));
		delivery_over(d);
	} else {
		snprintf(text, sizeof(text), "status %d", d->status);
		try_failed(d, result < 0 ? e->msg : text);
	}
}

/* On a connection, which is taken. */
static void post(struct delivery *d, int fd)
{
	static const struct http_call_events events = {
		.head = on_head,
		.body = on_body,
		.done = on_done,
	};
	const struct http_target target = {.fd = fd};
	const struct http1_header headers[] = {
		{VIEW("Host"), d->to.authority},
		{VIEW("Content-Type"), VIEW("application/json")},
		{VIEW("User-Agent"), VIEW(SOURCE)},
	};
	struct err e = ERR_NONE;

	if (http_call_new(d->webhook->egress->loop, &target, &events, d, &d->call, &e) < 0) {
		try_failed(d, e.msg);
		return;
	}
	http_call_begin(d->call, VIEW("POST"), d->to.target, headers, ARRAY_LEN(headers),
			(int64_t)d->body.len);
	http_call_write(d->call, buf_view(&d->body));
	http_call_end(d->call);
}

static void on_secured(void *arg, int fd, const struct err *e)
{
	struct delivery *d = arg;

	d->bridge = NULL;
	if (fd < 0)
		try_failed(d, e->msg);
	else
		post(d, fd);
}

static void on_connected(void *arg, int fd, const struct err *e)
{
	struct delivery *d = arg;
	struct egress *g = d->webhook->egress;

	connect_free(take_ptr(d->connect));
	if (fd < 0) {
		try_failed(d, e->msg);
	} else if (!d->trusted && !vault_is_elsewhere(fd)) {
		fd_close(fd);
		give_up(d, "its address is the host's own");
	} else if (d->to.tls) {
		d->bridge = tls_connect(g->bridges, g->tls_client, fd, d->to.host, on_secured, d);
	} else {
		post(d, fd);
	}
}

/* Users' URLs are called from the host: they must not lead into its own networks. */
static void dial(struct delivery *d, bool v6, const uint8_t bytes[16])
{
	struct egress *g = d->webhook->egress;
	char ip[INET6_ADDRSTRLEN] = "";
	const struct connect_to to = {
		.ip = ip,
		.port = d->to.port,
		.mark = g->alone     ? NET_TABLE_MARK
			: d->trusted ? 0
				     : NET_MARK_IN_STEAD,
	};
	struct err e = ERR_NONE;

	if (!d->trusted && net_special(v6, bytes)) {
		give_up(d, "its address is not a public one");
		return;
	}
	inet_ntop(v6 ? AF_INET6 : AF_INET, bytes, ip, sizeof(ip));
	if (connect_new(g->loop, &to, on_connected, d, &d->connect, &e) < 0)
		try_failed(d, e.msg);
}

static void on_found(void *arg, const struct dns_address *v, size_t n, const struct err *e)
{
	struct delivery *d = arg;
	struct dns_address first = n ? v[0] : (struct dns_address){0};

	if (n == 0) {
		try_failed(d, e->msg);
		return;
	}
	lookup_free(take_ptr(d->lookup));
	dial(d, first.v6, first.bytes);
}

static void begin_try(struct delivery *d)
{
	struct err e = ERR_NONE;

	d->tries++;
	d->status = 0;
	loop_timer_start(d->timer, TIMEOUT_MS);
	if (d->to.is_address)
		dial(d, d->to.v6, d->to.address);
	else if (lookup_new(d->webhook->egress, d->to.host, TIMEOUT_MS / 1000, on_found, d,
			    &d->lookup, &e) < 0)
		try_failed(d, e.msg);
}

static void on_timer(void *arg)
{
	struct delivery *d = arg;

	if (d->status < 0)
		begin_try(d);
	else if (is_well(d->status))
		delivery_over(d);
	else
		try_failed(d, "no answer within five seconds");
}

/* ---- the queue ---- */

static void begin_next(struct webhook *w)
{
	list_each_safe (it, tmp, &w->queue) {
		struct delivery *d = list_entry(it, struct delivery, link);

		if (w->running >= RUNNING_MAX)
			return;
		if (d->running)
			continue;
		d->running = true;
		w->running++;
		/* With an empty stack: a try may fail at once. */
		d->status = -1;
		loop_timer_start(d->timer, 0);
	}
}

static size_t count_of(const struct webhook *w, const char *box)
{
	size_t n = 0;

	for (const struct list *it = w->queue.next; it != &w->queue; it = it->next)
		n += strcmp(list_entry(it, const struct delivery, link)->box, box) == 0;
	return n;
}

static int write_body(struct buf *out, const char *sandbox_id, const char *name)
{
	char now[RFC3339_MAX];
	struct json_writer w;

	rfc3339_format((int64_t)(clock_wall_ms() / 1000) * 1000000000, now);
	json_writer_init(&w, out);
	json_write_object(&w);
	json_put_cstr(&w, "hostname", name);
	json_put_cstr(&w, "timestamp", now);
	json_put_cstr(&w, "source", SOURCE);
	json_put_cstr(&w, "sandboxId", sandbox_id);
	json_write_object_end(&w);
	return json_writer_end(&w);
}

void webhook_denied(struct webhook *w, const char *url, bool trusted, const char *sandbox_id,
		    const char *name)
{
	struct delivery *d;
	struct err e = ERR_NONE;

	if (w->n >= QUEUE_MAX || count_of(w, sandbox_id) >= QUEUE_PER_BOX) {
		/* The first, and each power of two after it, is said. */
		if ((w->dropped & (w->dropped + 1)) == 0)
			log_line(LOG_WARN, "too many wait for the webhook, dropping some",
				 LOG_S("box", sandbox_id), LOG_I("n", (int64_t)w->dropped + 1));
		w->dropped++;
		return;
	}
	d = mem_new(struct delivery);
	d->webhook = w;
	d->url = mem_strdup(url);
	d->box = mem_strdup(sandbox_id);
	d->trusted = trusted;
	d->timer = loop_timer_new(w->egress->loop, on_timer, d);
	buf_init(&d->body, BODY_MAX);
	list_push_back(&w->queue, &d->link);
	w->n++;
	if (http_url_parse(view_of(d->url), &d->to, &e) < 0 ||
	    write_body(&d->body, sandbox_id, name) < 0) {
		log_line(LOG_WARN, "no webhook can be told", LOG_S("box", sandbox_id),
			 LOG_S("err", e.msg));
		delivery_free(d);
		return;
	}
	begin_next(w);
}
