/*
 * sdk/ask.c - requests: written, answered, and made again where that is safe.
 *
 * A request is made again when it never left (no connection), when a connection that had waited
 * turned out to be dead before anything came back and the request may be made twice, or when the
 * server says "later".
 */
#include "sdk/ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/rand.h"
#include "codec/http_answer.h"
#include "sdk/address.h"
#include "sdk/ask_send.h"
#include "sdk/client_int.h"
#include "sdk/fail.h"
#include "sdk/wire.h"

#define ANSWER_MAX     (64u << 20)
#define HEADERS_MAX    (256u << 10)
#define FAILURE_MAX    (64u << 10)
#define READ_BYTES     (64u << 10)
#define BACKOFF_MS     500
#define BACKOFF_MAX_MS 60000

void answer_init(struct answer *a)
{
	*a = (struct answer){0};
	arena_init(&a->mem, HEADERS_MAX);
}

void answer_done(struct answer *a)
{
	buf_done(&a->body);
	arena_done(&a->mem);
}

static void answer_reset(struct answer *a)
{
	answer_done(a);
	answer_init(a);
}

bool answer_header(const struct answer *a, const char *name, struct view *ret)
{
	for (size_t i = 0; i < a->headers_n; i++) {
		if (view_iis(a->headers[i].name, name)) {
			*ret = a->headers[i].value;
			return true;
		}
	}
	return false;
}

/* One attempt. */
struct attempt {
	osb_client *client;
	const struct ask *ask;
	const char *request_id;
	struct wire_limit limit;
	bool own_limit;	 /* the call's own: it holds to the end */
	ask_data_fn *fn; /* NULL = collect */
	void *arg;
	struct answer *answer;
	struct wire *wire;
	struct http_answer parser;
	bool used;     /* the connection had served before */
	bool answered; /* something has come back */
	bool sent;     /* it may have reached the server */
	bool keep, stopped, complete;
	bool upgrades; /* a 101 is asked for */
	bool upgraded; /* and came */
};

/* ---- the answer ---- */

static int take_head(struct attempt *t, const struct http1_head *h, struct err *e)
{
	struct answer *a = t->answer;

	a->status = h->status;
	a->headers = arena_alloc(&a->mem, (h->headers_n + 1) * sizeof(a->headers[0]));
	for (size_t i = 0; a->headers && i < h->headers_n; i++, a->headers_n++)
		if (arena_view(&a->mem, h->headers[i].name, &a->headers[i].name) < 0 ||
		    arena_view(&a->mem, h->headers[i].value, &a->headers[i].value) < 0)
			return err_set(e, -EPROTO, "the answer's headers are too large");
	if (!a->headers)
		return err_set(e, -EPROTO, "the answer's headers are too large");
	t->keep = h->keep_alive;
	t->upgraded = h->status == 101;
	a->body.max =
		h->status >= 300 ? FAILURE_MAX : (t->ask->body_max ? t->ask->body_max : ANSWER_MAX);
	if (t->ask->endless && !t->own_limit)
		t->limit.deadline_us = 0;
	return 0;
}

static int take_data(struct attempt *t, struct view data, struct err *e)
{
	struct answer *a = t->answer;

	if (t->fn && a->status < 300) {
		t->stopped = t->fn(t->arg, data) != 0;
		return t->stopped ? err_set(e, -ECANCELED, "the call was ended by its handler") : 0;
	}
	if (a->status >= 300) /* as much as a message needs */
		data = view_first(data, a->body.max - a->body.len);
	if (buf_append_view(&a->body, data) < 0)
		return err_set(e, -E2BIG, "the answer is larger than %zu bytes", a->body.max);
	return 0;
}

/* 1 = complete. */
static int take_event(struct attempt *t, const struct http_answer_event *event, struct err *e)
{
	switch (event->kind) {
	case HTTP_ANSWER_HEAD:
		t->answered = true;
		return take_head(t, &event->head, e) < 0 ? e->code : t->upgraded;
	case HTTP_ANSWER_DATA:
		return take_data(t, event->data, e);
	case HTTP_ANSWER_END:
		t->complete = true;
		return 1;
	case HTTP_ANSWER_BAD:
		*e = event->e;
		e->code = -EPROTO;
		return e->code;
	default:
		return 0;
	}
}

static int read_more(struct attempt *t, struct err *e)
{
	char *room = http_answer_room(&t->parser, READ_BYTES);
	ssize_t n;

	if (!room)
		return err_set(e, -EPROTO, "the server's answer has no end");
	n = wire_read(t->wire, room, READ_BYTES, &t->limit, e);
	if (n < 0)
		return (int)n;
	if (n == 0) {
		t->keep = false;
		if (http_answer_eof(&t->parser, e) < 0)
			return e->code;
		t->complete = true;
		return 1;
	}
	t->answered = true;
	http_answer_add(&t->parser, (size_t)n);
	return 0;
}

static int read_answer(struct attempt *t, struct err *e)
{
	struct http_answer_event event;
	int r;

	for (;;) {
		http_answer_next(&t->parser, &event);
		r = event.kind == HTTP_ANSWER_NONE ? read_more(t, e) : take_event(t, &event, e);
		if (r != 0)
			return r < 0 ? r : 0;
	}
}

/* ---- one attempt ---- */

/* A server that refuses a body may say why before it has read it. */
static bool may_have_answered(const struct err *e)
{
	return e->code == -EPIPE || e->code == -ECONNRESET;
}

static int exchange(struct attempt *t, bool fresh, struct err *e)
{
	const struct ask *q = t->ask;
	struct err late = ERR_NONE;
	int r = client_connect(t->client, q->to, fresh, &t->limit, &t->wire, &t->used, e);

	if (r < 0)
		return r;
	http_answer_init(&t->parser);
	t->parser.to_head = strcmp(q->method, "HEAD") == 0;
	t->parser.upgrades = t->upgrades;
	t->sent = true;
	r = ask_send(t->client, q, t->request_id, t->wire, &t->limit, e);
	if (r == 0 || may_have_answered(e)) {
		int answered = read_answer(t, r == 0 ? e : &late);

		if (r < 0 && answered == 0)
			t->keep = false;
		r = r < 0 && answered < 0 ? r : answered;
	}
	return r;
}

static void settle(struct attempt *t, int r)
{
	if (t->wire && r == 0 && t->complete && t->keep && !t->upgraded &&
	    http_answer_is_empty(&t->parser))
		client_keep(t->client, t->ask->to, take_ptr(t->wire));
	if (!t->upgraded || r < 0)
		wire_close(take_ptr(t->wire));
}

/* ---- all attempts ---- */

/* From half of `most` to all of it: clients that failed together do not come back together. */
static uint64_t some_of(uint64_t most)
{
	uint32_t n;

	rand_bytes(&n, sizeof(n));
	return most / 2 + n % (most / 2 + 1);
}

/* Milliseconds to wait before another attempt, or -1: there is none. */
static int64_t pause_before(const struct attempt *t, int made, int r, const struct err *e)
{
	const struct ask *q = t->ask;
	uint64_t most = (uint64_t)BACKOFF_MS << MIN(made, 6), ms;
	struct view after;
	uint32_t seconds;

	if (made >= t->client->retries || r == -ETIMEDOUT || r == -ECANCELED || t->stopped)
		return -1;
	ms = some_of(most);
	if (r == 0) {
		int status = t->answer->status;

		if (!q->twice || (status != 429 && status != 502 && status != 503 && status != 504))
			return -1;
		if (answer_header(t->answer, "Retry-After", &after) &&
		    num_parse_u32(after, &seconds))
			ms = (uint64_t)MIN(seconds, 60u) * 1000;
	} else if (t->sent && (t->answered || !q->twice)) {
		return -1; /* it may have been done */
	} else if (e->code == -EINVAL || e->code == -EKEYREJECTED) {
		return -1;
	} else if (t->used) {
		return 0; /* it was the connection */
	}
	if (t->limit.deadline_us && clock_mono_us() + ms * 1000 >= t->limit.deadline_us)
		return -1;
	return (int64_t)MIN(ms, (uint64_t)BACKOFF_MAX_MS);
}

/* Bodies out of descriptors are gone once they were read. */
static bool body_stays(const struct ask *q)
{
	for (size_t i = 0; i < q->parts_n; i++)
		if (q->parts[i].fd >= 0)
			return false;
	return true;
}

static int attempt(struct attempt *t, struct err *e)
{
	struct wire_limit limit = t->limit;

	for (int made = 0;; made++) {
		int64_t ms;
		int r = exchange(t, made > 0, e);

		ms = pause_before(t, made, r, e);
		if (ms < 0 || (t->sent && !body_stays(t->ask))) {
			settle(t, r);
			return r;
		}
		wire_close(take_ptr(t->wire));
		if (t->sent)
			http_answer_done(&t->parser);
		if (ms > 0)
			wire_sleep((uint64_t)ms, limit.cancel);
		answer_reset(t->answer);
		t->limit = limit;
		t->answered = t->sent = t->complete = t->keep = false;
	}
}

static struct wire_limit limit_of(const osb_client *c, const osb_call *call)
{
	uint32_t ms = call && call->timeout_ms ? call->timeout_ms : c->timeout_ms;

	return (struct wire_limit){
		.deadline_us = ms == OSB_FOREVER ? 0 : clock_mono_us() + (uint64_t)ms * 1000,
		.cancel = call ? call->cancel : NULL,
	};
}

static void tell_more(const struct answer *a, osb_error *e)
{
	struct view text;
	uint32_t seconds;

	if (!e)
		return;
	if (answer_header(a, "X-Request-ID", &text))
		snprintf(e->request_id, sizeof(e->request_id), VIEW_FMT, VIEW_ARG(text));
	if (answer_header(a, "Retry-After", &text) && num_parse_u32(text, &seconds))
		e->retry_after_s = (int)MIN(seconds, 86400u);
}

/* Whatever was put together wrongly has no method any more: see asking.h. */
static bool can_be_sent(const struct ask *q)
{
	for (size_t i = 0; i < q->target.len; i++)
		if ((unsigned char)q->target.p[i] <= ' ' || q->target.p[i] == 0x7f)
			return false;
	return http1_is_token(view_of(q->method)) && view_starts(q->target, VIEW("/"));
}

static int ask(struct attempt *t, const osb_call *call, osb_error *e)
{
	struct err why = ERR_NONE;
	int r;

	fail_none(e);
	if (!can_be_sent(t->ask))
		return fail(e, OSB_ERR_INVALID, "an id is missing, or a path is no path");
	t->limit = limit_of(t->client, call);
	t->own_limit = call && call->timeout_ms;
	t->request_id = call ? call->request_id : NULL;
	r = attempt(t, &why);
	if (t->sent && !t->upgraded)
		http_answer_done(&t->parser);
	tell_more(t->answer, e);
	if (r < 0)
		return fail_err(e, &why);
	if (!t->upgraded && (t->answer->status < 200 || t->answer->status > 299))
		return fail_answer(e, t->answer->status, buf_view(&t->answer->body));
	return 0;
}

int ask_whole(osb_client *c, const struct ask *q, const osb_call *call, struct answer *ret,
	      osb_error *e)
{
	struct attempt t = {.client = c, .ask = q, .answer = ret};

	return ask(&t, call, e);
}

int ask_stream(osb_client *c, const struct ask *q, const osb_call *call, ask_data_fn *fn, void *arg,
	       struct answer *ret, osb_error *e)
{
	struct attempt t = {.client = c, .ask = q, .answer = ret, .fn = fn, .arg = arg};

	return ask(&t, call, e);
}

int ask_upgrade(osb_client *c, const struct ask *q, const osb_call *call, struct wire **ret,
		struct buf *ret_rest, osb_error *e)
{
	struct answer answer;
	struct attempt t = {.client = c, .ask = q, .answer = &answer, .upgrades = true};
	int r;

	answer_init(&answer);
	r = ask(&t, call, e);
	if (r == 0 && !t.upgraded)
		r = fail(e, OSB_ERR_PROTOCOL, "the server does not change to another protocol");
	if (t.upgraded && r == 0 && buf_append_view(ret_rest, http_answer_behind(&t.parser)) < 0)
		r = fail(e, OSB_ERR_PROTOCOL, "too much came behind the server's answer");
	if (t.upgraded)
		http_answer_done(&t.parser);
	if (r == 0)
		*ret = take_ptr(t.wire);
	wire_close(t.wire);
	answer_done(&answer);
	return r;
}
