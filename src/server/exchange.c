/*
 * server/exchange.c - waiting exchanges, and the answers that handlers share.
 */
#include "server/exchange.h"

#include "base/buf.h"
#include "base/mem.h"
#include "codec/json_writer.h"
#include "net/http_server.h"
#include "net/router.h"
#include "server/app.h"
#include "server/failure.h"
#include "server/sandboxes.h"

#define REPLY_MAX (64u << 20)

static void client_gone(struct http_exchange *x, void *arg)
{
	struct waiting *w = arg;

	(void)x;
	w->x = NULL;
}

struct waiting *waiting_new(struct http_exchange *x, struct app *app)
{
	struct waiting *w = mem_new(struct waiting);

	w->x = x;
	w->app = app;
	http_on_gone(x, client_gone, w);
	return w;
}

struct http_exchange *waiting_end(struct waiting *w)
{
	struct http_exchange *x = w->x;

	if (x)
		http_on_gone(x, NULL, NULL);
	free(w);
	return x;
}

struct sandbox *exchange_sandbox(struct http_exchange *x, struct app *app)
{
	struct view id = route_param(x, "id");
	struct sandbox *b = sandboxes_find(app->sandboxes, id);

	if (!b)
		http_reply_error(x, 404, "DOCKER::SANDBOX_NOT_FOUND", "there is no sandbox '%.*s'",
				 (int)MIN(id.len, (size_t)64), id.p);
	return b;
}

void exchange_reply_json(struct http_exchange *x, int status,
			 void (*write)(struct json_writer *w, void *arg), void *arg)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(REPLY_MAX);
	struct json_writer w;

	json_writer_init(&w, &out);
	write(&w, arg);
	if (json_writer_end(&w) < 0)
		http_reply_error(x, 500, "SANDBOX::INTERNAL_ERROR", "the answer is too large");
	else
		http_reply(x, status, "application/json", buf_view(&out));
}

void exchange_reply_empty(struct http_exchange *x, int status)
{
	http_reply(x, status, NULL, VIEW_NONE);
}
