/*
 * ingress/ask.c - see ask.h.
 */
#include "ingress/ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "ingress/upstreams.h"
#include "net/http_client.h"
#include "net/loop.h"

#define ANSWER_MS 10000

struct ask {
	struct loop *loop;
	const struct upstream *to;
	const char *api_key;
	char *target;
	ask_fn *fn;
	void *arg;
	struct dial *dial;
	struct http_call *call;
	struct loop_timer *patience;
	int status;
	struct buf body;
	bool too_much;
};

static void tell(struct ask *a, int status, const struct err *e)
{
	ask_fn *fn = a->fn;
	void *arg = a->arg;
	struct buf body = a->body;
	struct err why = *e;

	a->body = (struct buf){0};
	ask_free(a);
	fn(arg, status, buf_view(&body), &why);
	buf_done(&body);
}

static void on_head(void *arg, const struct http1_head *head)
{
	((struct ask *)arg)->status = head->status;
}

static void on_body(void *arg, struct view bytes)
{
	struct ask *a = arg;

	a->too_much |= buf_append_view(&a->body, bytes) < 0;
}

static void on_done(void *arg, int result, const struct err *e)
{
	struct ask *a = arg;
	struct err why = e ? *e : ERR_NONE;

	if (result == 0 && a->too_much)
		result = err_set(&why, -E2BIG, "the answer is too long");
	tell(a, result < 0 ? 0 : a->status, &why);
}

static void on_late(void *arg)
{
	struct err e = ERR_NONE;

	(void)err_set(&e, -ETIMEDOUT, "no answer within %d s", ANSWER_MS / 1000);
	tell(arg, 0, &e);
}

static const struct http_call_events events = {
	.head = on_head,
	.body = on_body,
	.done = on_done,
};

static void dialed(void *arg, int fd, const struct err *e)
{
	struct ask *a = arg;
	struct http_target target = {.fd = fd};
	struct http1_header headers[3] = {
		{VIEW("Host"), a->to->url.authority},
		{VIEW("Accept"), VIEW("application/json")},
		{VIEW("OPEN-SANDBOX-API-KEY"), view_of(a->api_key)},
	};
	struct err why = ERR_NONE;

	a->dial = NULL;
	if (fd < 0) {
		tell(a, 0, e);
		return;
	}
	if (http_call_new(a->loop, &target, &events, a, &a->call, &why) < 0) {
		tell(a, 0, &why);
		return;
	}
	http_call_begin(a->call, VIEW("GET"), view_of(a->target), headers, a->api_key ? 3 : 2,
			/* length= */ 0);
	http_call_end(a->call);
}

struct ask *ask_new(struct loop *l, struct upstreams *u, size_t i, const char *api_key,
		    struct view path, ask_fn *fn, void *arg)
{
	struct ask *a = mem_new(struct ask);

	a->loop = l;
	a->to = upstreams_at(u, i);
	a->api_key = api_key;
	a->target = mem_printf(VIEW_FMT VIEW_FMT, VIEW_ARG(a->to->path), VIEW_ARG(path));
	a->fn = fn;
	a->arg = arg;
	buf_init(&a->body, ASK_ANSWER_MAX);
	a->patience = loop_timer_new(l, on_late, a);
	loop_timer_start(a->patience, ANSWER_MS);
	a->dial = dial_new(u, i, dialed, a);
	return a;
}

void ask_free(struct ask *a)
{
	if (!a)
		return;
	dial_free(a->dial);
	http_call_free(a->call);
	loop_timer_free(a->patience);
	buf_done(&a->body);
	free(a->target);
	free(a);
}
