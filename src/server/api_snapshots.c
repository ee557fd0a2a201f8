/*
 * server/api_snapshots.c - /sandboxes/{id}/snapshots and /snapshots: take, list, get, delete.
 */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "codec/url.h"
#include "net/http_server.h"
#include "net/router.h"
#include "server/app.h"
#include "server/exchange.h"
#include "server/failure.h"
#include "server/page.h"
#include "server/request_fields.h"
#include "server/routes.h"
#include "server/sandboxes.h"
#include "server/snapshots.h"

#define BODY_MAX       65536
#define NAME_BYTES_MAX 1024

static void write_snapshot(struct json_writer *w, void *arg)
{
	snapshot_encode(w, arg);
}

/* The snapshot that "{snapshotId}" names, or NULL: then 404 was answered. */
static struct snapshot *named(struct http_exchange *x, struct app *app)
{
	struct view id = route_param(x, "snapshotId");
	struct snapshot *n = snapshots_find(app->snapshots, id);

	if (!n)
		http_reply_error(x, 404, "SNAPSHOT::NOT_FOUND", "there is no snapshot '%.*s'",
				 (int)MIN(id.len, (size_t)64), id.p);
	return n;
}

/* ---- take ---- */

/* The body may be missing, and so may everything in it. */
static int read_name(struct view body, struct arena *a, struct view *ret, struct failure *f)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct view name = VIEW_NONE;
	struct err e = ERR_NONE;

	if (view_trim(body).len == 0)
		return 0;
	if (json_parse(body, 0, &v, &e) < 0)
		return failure_set(f, 422, REQUEST_CODE, "the body is not JSON: %s", e.msg);
	if (json_kind(v) == JSON_NULL)
		return 0;
	if (json_kind(v) != JSON_OBJECT)
		return failure_set(f, 422, REQUEST_CODE, "the body must be a JSON object");
	if (request_string(v, "name", &name, f) < 0)
		return -1;
	if (name.p && (name.len == 0 || name.len > NAME_BYTES_MAX))
		return failure_set(f, 422, REQUEST_CODE, "name must have 1 to %d characters",
				   NAME_BYTES_MAX);
	if (arena_view(a, name, ret) < 0)
		return failure_set(f, 500, "SANDBOX::INTERNAL_ERROR", "the request is too large");
	return 0;
}

static void take_with_body(struct http_exchange *x, struct view body, void *arg)
{
	struct app *app = arg;
	struct sandbox *b = exchange_sandbox(x, app);
	struct failure f = FAILURE_NONE;
	struct view name = VIEW_NONE;
	struct snapshot *n;
	char location[64];
	int len;

	if (!b)
		return;
	if (read_name(body, http_arena(x), &name, &f) < 0 ||
	    !(n = snapshots_take(app->snapshots, b, name, &f))) {
		failure_reply(x, &f);
		return;
	}
	len = snprintf(location, sizeof(location), "/v1/snapshots/%s", n->id);
	http_reply_header(x, "Location", view_mem(location, (size_t)len));
	exchange_reply_json(x, 202, write_snapshot, n);
}

static void take(struct http_exchange *x, void *app)
{
	http_body_collect(x, BODY_MAX, take_with_body, app);
}

/* ---- list ---- */

struct listing {
	struct snapshots *snapshots;
	struct view sandbox_id, name; /* .p NULL = any */
	unsigned states;	      /* bit per state */
	bool by_state;
	struct page page;
};

/* States are written exactly; one that does not exist matches nothing. */
static void add_state(struct listing *l, struct view name)
{
	l->by_state = true;
	for (int i = 0; i < SNAPSHOT_STATES_; i++)
		if (view_is(name, snapshot_state_name((enum snapshot_state)i)))
			l->states |= 1u << i;
}

static int read_query(struct arena *a, struct view query, struct listing *l, struct failure *f)
{
	struct view name, value;
	int r;

	while ((r = url_query_next(a, &query, &name, &value)) > 0) {
		if (view_is(name, "state"))
			add_state(l, value);
		else if (view_is(name, "sandboxId"))
			l->sandbox_id = value.p ? value : VIEW("");
		else if (view_is(name, "name"))
			l->name = value.p ? value : VIEW("");
		else if (page_parameter(&l->page, name, value, f) < 0)
			return -1;
	}
	if (r < 0)
		return failure_set(f, 422, REQUEST_CODE, "the query is malformed");
	return 0;
}

static bool matches(const struct listing *l, const struct snapshot *n)
{
	if (l->by_state && !(l->states >> n->state & 1))
		return false;
	if (l->sandbox_id.p && !view_is(l->sandbox_id, n->sandbox_id))
		return false;
	return !l->name.p || (n->name && view_is(l->name, n->name));
}

static void write_page(struct json_writer *w, void *arg)
{
	const struct listing *l = arg;
	struct snapshot *n = NULL;
	uint64_t total = 0;

	json_write_object(w);
	json_write_key(w, "items");
	json_write_array(w);
	while ((n = snapshots_next(l->snapshots, n)))
		if (matches(l, n) && page_holds(&l->page, total++))
			snapshot_encode(w, n);
	json_write_array_end(w);
	page_write(w, &l->page, total);
	json_write_object_end(w);
}

static void list(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct listing l = {.snapshots = app->snapshots, .page = PAGE_FIRST};
	struct failure f = FAILURE_NONE;

	if (read_query(http_arena(x), http_query(x), &l, &f) < 0)
		failure_reply(x, &f);
	else
		exchange_reply_json(x, 200, write_page, &l);
}

/* ---- one snapshot ---- */

static void get(struct http_exchange *x, void *app)
{
	struct snapshot *n = named(x, app);

	if (n)
		exchange_reply_json(x, 200, write_snapshot, n);
}

static void delete (struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct snapshot *n = named(x, app);
	struct failure f = FAILURE_NONE;

	if (!n)
		return;
	if (snapshots_delete(app->snapshots, n, &f) < 0)
		failure_reply(x, &f);
	else
		exchange_reply_empty(x, 204);
}

const struct route api_snapshots_routes[] = {
	{"POST", "/sandboxes/{id}/snapshots", take, 0},
	{"GET", "/snapshots", list, 0},
	{"GET", "/snapshots/{snapshotId}", get, 0},
	{"DELETE", "/snapshots/{snapshotId}", delete, 0},
	{NULL, NULL, NULL, 0},
};
