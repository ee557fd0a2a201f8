/*
 * server/diagnostics_network.c - one request to egress, for an exchange that waits for it.
 */
#include "server/diagnostics_network.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "server/api_network.h"
#include "server/app.h"
#include "server/exchange.h"
#include "server/policing.h"
#include "server/sandboxes.h"
#include "server/state_dir.h"

#define LINES_MAX (8u << 20)
#define WAIT_MS	  10000

struct fetch {
	struct http_exchange *x; /* NULL until egress has the sandbox */
	struct waiting *waiting; /* until then */
	struct app *app;
	char id[sizeof(((struct sandbox *)0)->id)];
	unsigned limit;
	struct http_call *call;
	int status;
	bool too_large;
	struct buf lines;
	diagnostics_network_fn *fn;
};

static void fetch_free(struct fetch *f)
{
	http_call_free(f->call);
	buf_done(&f->lines);
	free(f);
}

static void client_gone(struct http_exchange *x, void *arg)
{
	(void)x;
	fetch_free(arg);
}

static void finish(struct fetch *f, const struct err *e)
{
	http_on_gone(f->x, NULL, NULL);
	f->fn(f->x, buf_view(&f->lines), e);
	fetch_free(f);
}

static void on_head(void *arg, const struct http1_head *head)
{
	((struct fetch *)arg)->status = head->status;
}

static void on_body(void *arg, struct view bytes)
{
	struct fetch *f = arg;

	if (buf_append_view(&f->lines, bytes) < 0)
		f->too_large = true;
}

static void on_done(void *arg, int result, const struct err *e)
{
	struct fetch *f = arg;
	struct err bad = ERR_NONE;

	if (result < 0)
		bad = *e;
	else if (f->too_large)
		err_set(&bad, -E2BIG, "the decisions are too many for one answer");
	else if (f->status != 200)
		err_set(&bad, -EIO, "egress answers %d", f->status);
	finish(f, bad.code ? &bad : NULL);
}

static void ask(struct fetch *f, const struct sandbox *b)
{
	static const struct http_call_events events = {
		.head = on_head, .body = on_body, .done = on_done};
	const struct http_target target = {.fd = -1,
					   .unix_path = "/" STATE_DIR_EGRESS_SOCKET,
					   .connect_timeout_ms = WAIT_MS,
					   .idle_timeout_ms = WAIT_MS};
	const struct http1_header headers[] = {
		{VIEW("Host"), VIEW("egress")},
		{VIEW(API_NETWORK_TOKEN_HEADER), view_of(b->spec.network.token)},
	};
	struct err e = ERR_NONE;
	char path[128];

	if (http_call_new(f->app->loop, &target, &events, f, &f->call, &e) < 0) {
		finish(f, &e);
		return;
	}
	snprintf(path, sizeof(path), "/boxes/%s/policy/events?format=lines&limit=%u", b->id,
		 f->limit);
	http_call_begin(f->call, VIEW("GET"), view_of(path), headers, ARRAY_LEN(headers), 0);
	http_call_end(f->call);
}

/* Egress has the sandbox, or never will. */
static void begun(void *arg, const struct failure *not_begun)
{
	struct fetch *f = arg;
	struct sandbox *b = sandboxes_find(f->app->sandboxes, view_of(f->id));
	struct err e = ERR_NONE;

	f->x = waiting_end(f->waiting);
	if (!f->x) {
		fetch_free(f);
		return;
	}
	http_on_gone(f->x, client_gone, f);
	if (b && !not_begun) {
		ask(f, b);
		return;
	}
	err_set(&e, -ENOENT, "%s", b ? not_begun->message : "the sandbox has ended");
	finish(f, &e);
}

void diagnostics_network(struct http_exchange *x, struct app *app, struct sandbox *b,
			 unsigned limit, diagnostics_network_fn *fn)
{
	struct fetch *f = mem_new(struct fetch);

	f->waiting = waiting_new(x, app);
	f->app = app;
	f->limit = limit;
	f->fn = fn;
	buf_init(&f->lines, LINES_MAX);
	memcpy(f->id, b->id, sizeof(f->id));
	policing_begin(app->sandboxes, b, begun, f);
}
