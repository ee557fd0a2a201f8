/*
 * server/api_list.c - GET /sandboxes: what the filter lets through, page by page.
 */
#include "codec/json_writer.h"
#include "net/http_server.h"
#include "server/app.h"
#include "server/encode.h"
#include "server/exchange.h"
#include "server/failure.h"
#include "server/list_filter.h"
#include "server/routes.h"
#include "server/sandboxes.h"

struct listing {
	struct sandboxes *sandboxes;
	const struct list_filter *filter;
};

static void write_page(struct json_writer *w, void *arg)
{
	const struct listing *l = arg;
	const struct list_filter *q = l->filter;
	uint64_t total = 0;
	struct sandbox *b = NULL;

	json_write_object(w);
	json_write_key(w, "items");
	json_write_array(w);
	while ((b = sandboxes_next(l->sandboxes, b))) {
		if (!list_filter_matches(q, b))
			continue;
		if (page_holds(&q->page, total++))
			encode_sandbox(w, b);
	}
	json_write_array_end(w);
	page_write(w, &q->page, total);
	json_write_object_end(w);
}

static void list_sandboxes(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct failure f = FAILURE_NONE;
	struct list_filter q;
	struct listing l = {.sandboxes = app->sandboxes, .filter = &q};

	if (list_filter_read(http_arena(x), http_query(x), &q, &f) < 0)
		failure_reply(x, &f);
	else
		exchange_reply_json(x, 200, write_page, &l);
}

const struct route api_list_routes[] = {
	{"GET", "/sandboxes", list_sandboxes, 0},
	{NULL, NULL, NULL, 0},
};
