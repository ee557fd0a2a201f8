/*
 * server/api_diagnostics.c - /sandboxes/{id}/diagnostics: logs, events, inspect, summary.
 *
 * Without a scope the answer is text for people; with one it is JSON for SDKs.
 */
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/json_writer.h"
#include "codec/url.h"
#include "net/http_server.h"
#include "net/router.h"
#include "runtime/runtime.h"
#include "server/app.h"
#include "server/diagnostics_logs.h"
#include "server/diagnostics_network.h"
#include "server/diagnostics_text.h"
#include "server/exchange.h"
#include "server/failure.h"
#include "server/policing.h"
#include "server/request_fields.h"
#include "server/routes.h"
#include "server/sandboxes.h"

#define TEXT_TYPE      "text/plain; charset=utf-8"
#define TEXT_MAX       (8u << 20)
#define TAIL_MAX       10000
#define EVENTS_MAX     500
#define SINCE_IF_BAD_S 600

/* What was asked for. */
struct wanted {
	unsigned tail, events; /* at most so many lines */
	int64_t since_us;      /* no older lines; 0 = all */
	bool has_scope;
	struct view scope;
};

/* "<n>[smhd]"; what is malformed means ten minutes, as clients know it. */
static int64_t since_of(struct view text)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
	int64_t now_s = (int64_t)(clock_wall_ms() / 1000), ago_s = SINCE_IF_BAD_S;
	uint64_t n;

	for (size_t i = 0; i < ARRAY_LEN(units) && text.len > 1; i++)
		if (text.p[text.len - 1] == units[i].unit &&
		    num_parse_u64(view_first(text, text.len - 1), &n))
			ago_s = n < (uint64_t)(now_s / units[i].seconds)
					? (int64_t)n * units[i].seconds
					: now_s;
	return MAX((now_s - ago_s) * 1000000, INT64_C(1));
}

static int read_count(const char *name, struct view text, unsigned max, unsigned *ret,
		      struct failure *f)
{
	uint64_t n;

	if (!num_parse_u64(text, &n) || n < 1 || n > max)
		return failure_set(f, 422, REQUEST_CODE, "%s must be a whole number from 1 to %u",
				   name, max);
	*ret = (unsigned)n;
	return 0;
}

/* `limit_name`: what the number of events is called. */
static int read_query(struct http_exchange *x, const char *limit_name, struct wanted *q,
		      struct failure *f)
{
	struct view rest = http_query(x), name, value;
	int r;

	while ((r = url_query_next(http_arena(x), &rest, &name, &value)) > 0) {
		int bad = 0;

		if (view_is(name, "tail"))
			bad = read_count("tail", value, TAIL_MAX, &q->tail, f);
		else if (view_is(name, limit_name))
			bad = read_count(limit_name, value, EVENTS_MAX, &q->events, f);
		else if (view_is(name, "since"))
			q->since_us = since_of(value);
		else if (view_is(name, "scope")) {
			q->has_scope = true;
			q->scope = value;
		}
		if (bad < 0)
			return -1;
	}
	return r < 0 ? failure_set(f, 422, REQUEST_CODE, "the query is malformed") : 0;
}

static void reply_text(struct http_exchange *x, const struct buf *text, const char *if_empty)
{
	http_reply(x, 200, TEXT_TYPE, text->len ? buf_view(text) : view_of(if_empty));
}

static void reply_failed(struct http_exchange *x, const struct err *e)
{
	http_reply_error(x, 500, "SANDBOX::INTERNAL_ERROR", "%s", e->msg);
}

/* ---- the form for SDKs ---- */

/* What is told: everything, changes of the state alone, or decisions about the network. */
enum scope_kind { SCOPE_ALL, SCOPE_LIFECYCLE, SCOPE_NETWORK };

struct scope {
	const char *name; /* NULL ends the list */
	enum scope_kind kind;
};

#define LOG_SCOPES   "container, all"
#define EVENT_SCOPES "runtime, lifecycle, network, all"

struct report {
	const char *id, *kind, *type;
	const struct scope *scope;
	bool truncated;
	struct view content;
};

static const struct scope log_scopes[] = {
	{"container", SCOPE_ALL}, {"all", SCOPE_ALL}, {NULL, SCOPE_ALL}};
static const struct scope event_scopes[] = {{"runtime", SCOPE_ALL},
					    {"lifecycle", SCOPE_LIFECYCLE},
					    {"network", SCOPE_NETWORK},
					    {"all", SCOPE_ALL},
					    {NULL, SCOPE_ALL}};

static const struct scope *const network_scope = &event_scopes[2];

/* NULL: then 400 was answered. */
static const struct scope *find_scope(struct http_exchange *x, const struct scope *scopes,
				      const char *known, struct view name)
{
	for (size_t i = 0; scopes[i].name; i++)
		if (view_is(name, scopes[i].name))
			return &scopes[i];
	http_reply_error(x, 400, "DIAGNOSTICS_SCOPE_UNSUPPORTED",
			 "there is no scope '%.*s' here; supported: %s",
			 (int)MIN(name.len, (size_t)60), name.p, known);
	return NULL;
}

static void write_report(struct json_writer *w, void *arg)
{
	const struct report *r = arg;

	json_write_object(w);
	json_put_cstr(w, "sandboxId", r->id);
	json_put_cstr(w, "kind", r->kind);
	json_put_cstr(w, "scope", r->scope->name);
	json_put_cstr(w, "delivery", "inline");
	json_put_cstr(w, "contentType", r->type);
	json_put_bool(w, "truncated", r->truncated);
	json_put_string(w, "content", r->content);
	json_put_int(w, "contentLength", (int64_t)r->content.len);
	json_write_object_end(w);
}

/* ---- logs and events ---- */

/* One of the two, as far as they are alike. */
struct subject {
	const char *kind, *known_scopes, *if_none;
	const struct scope *scopes;
};

/* NULL: then the request was answered. */
static struct sandbox *begin(struct http_exchange *x, struct app *app, const struct subject *s,
			     struct wanted *q, struct report *report)
{
	struct failure f = FAILURE_NONE;
	struct sandbox *b;

	if (read_query(x, "limit", q, &f) < 0) {
		failure_reply(x, &f);
		return NULL;
	}
	b = exchange_sandbox(x, app);
	if (!b)
		return NULL;
	report->id = b->id;
	report->kind = s->kind;
	report->type = TEXT_TYPE;
	if (q->has_scope)
		report->scope = find_scope(x, s->scopes, s->known_scopes, q->scope);
	return q->has_scope && !report->scope ? NULL : b;
}

static void finish(struct http_exchange *x, const struct subject *s, struct report *report,
		   const struct buf *text)
{
	if (!report->scope) {
		http_reply_header(x, "Deprecation", VIEW("true"));
		reply_text(x, text, s->if_none);
		return;
	}
	report->content = buf_view(text);
	exchange_reply_json(x, 200, write_report, report);
}

static void logs(struct http_exchange *x, void *app)
{
	static const struct subject subject = {"logs", LOG_SCOPES, "(no logs)", log_scopes};
	osb_cleanup(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
	struct wanted q = {0};
	struct report report = {0};
	struct err e = ERR_NONE;
	struct sandbox *b = begin(x, app, &subject, &q, &report);

	if (!b)
		return;
	if (q.tail == 0)
		q.tail = q.has_scope ? TAIL_MAX : 100;
	if (diagnostics_logs(b->id, q.tail, q.since_us, &text, &report.truncated, &e) < 0)
		reply_failed(x, &e);
	else
		finish(x, &subject, &report, &text);
}

/* The sandbox is named by the path. */
static void network_told(struct http_exchange *x, struct view lines, const struct err *e)
{
	osb_cleanup(mem_freep) char *id =
		mem_strndup(route_param(x, "id").p, route_param(x, "id").len);
	struct report report = {
		.id = id,
		.kind = "events",
		.type = DIAGNOSTICS_NETWORK_TYPE,
		.scope = network_scope,
		.content = lines,
	};

	if (!e) {
		exchange_reply_json(x, 200, write_report, &report);
		return;
	}
	http_reply_header(x, "Retry-After", VIEW("1"));
	http_reply_error(x, 503, "SANDBOX::NETWORK_POLICY_UNAVAILABLE", "%s", e->msg);
}

/* Without a policy nothing was decided; of one that has ended nothing is known. */
static void network_events(struct http_exchange *x, struct app *app, struct sandbox *b,
			   unsigned limit)
{
	if (policing_is_on(b) && !sandbox_is_over(b) && b->state != SANDBOX_PENDING)
		diagnostics_network(x, app, b, limit, network_told);
	else
		network_told(x, VIEW(""), NULL);
}

static void events(struct http_exchange *x, void *arg)
{
	static const struct subject subject = {"events", EVENT_SCOPES, "(no events)", event_scopes};
	osb_cleanup(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
	struct app *app = arg;
	struct wanted q = {0};
	struct report report = {0};
	struct err e = ERR_NONE;
	struct sandbox *b = begin(x, app, &subject, &q, &report);

	if (!b)
		return;
	if (q.events == 0)
		q.events = q.has_scope ? EVENTS_MAX : 50;
	if (report.scope && report.scope->kind == SCOPE_NETWORK)
		network_events(x, app, b, q.events);
	else if (diagnostics_events(app->sandboxes, b, q.events,
				    report.scope && report.scope->kind == SCOPE_LIFECYCLE, &text,
				    &report.truncated, &e) < 0)
		reply_failed(x, &e);
	else
		finish(x, &subject, &report, &text);
}

/* ---- inspect and summary ---- */

/* A report that waits for the runtime's numbers; the sandbox may go meanwhile. */
struct inspection {
	struct waiting *waiting;
	struct app *app;
	char id[sizeof(((struct sandbox *)0)->id)];
	bool summary;
	struct wanted wanted;
};

static int add_summary(const struct inspection *in, const struct sandbox *b, struct buf *text,
		       struct err *e)
{
	bool truncated;
	size_t before;
	int r = buf_append_str(text, "\n=== EVENTS ===\n");

	before = text->len;
	if (r == 0)
		r = diagnostics_events(in->app->sandboxes, b, in->wanted.events, false, text,
				       &truncated, e);
	if (r == 0 && text->len == before)
		r = buf_append_str(text, "(no events)\n");
	if (r == 0)
		r = buf_append_str(text, "\n=== LOGS ===\n");
	before = text->len;
	if (r == 0)
		r = diagnostics_logs(in->id, in->wanted.tail, in->wanted.since_us, text, &truncated,
				     e);
	if (r == 0 && text->len == before)
		r = buf_append_str(text, "(no logs)\n");
	return r < 0 && e->code == 0 ? err_set(e, r, "the summary is too large") : r;
}

static int compose(const struct inspection *in, const struct sandbox *b,
		   const struct runtime_stats *stats, struct buf *text, struct err *e)
{
	int r = in->summary ? buf_append_str(text, "=== INSPECT ===\n") : 0;

	if (r == 0)
		r = diagnostics_inspect(b, in->app->runtime->ops->name, stats, text);
	if (r < 0)
		return err_set(e, r, "the sandbox's description is too large for one answer");
	return in->summary ? add_summary(in, b, text, e) : 0;
}

/* Without numbers (it has ended, or the runtime cannot tell) the rest is told all the same. */
static void inspected(void *arg, const struct runtime_stats *stats, const struct err *not_known)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
	osb_cleanup(mem_freep) struct inspection *in = arg;
	struct http_exchange *x = waiting_end(in->waiting);
	struct err e = ERR_NONE;
	struct sandbox *b;

	if (!x)
		return;
	b = exchange_sandbox(x, in->app);
	if (!b)
		return;
	if (compose(in, b, not_known ? NULL : stats, &text, &e) < 0)
		reply_failed(x, &e);
	else
		reply_text(x, &text, "");
}

static void begin_inspection(struct http_exchange *x, struct app *app, bool summary)
{
	struct runtime *r = app->runtime;
	struct inspection *in;
	struct wanted q = {.tail = 50, .events = 20};
	struct failure f = FAILURE_NONE;
	struct err ended = ERR_NONE;
	struct sandbox *b;

	if (read_query(x, "event_limit", &q, &f) < 0) {
		failure_reply(x, &f);
		return;
	}
	b = exchange_sandbox(x, app);
	if (!b)
		return;
	in = mem_new(struct inspection);
	in->waiting = waiting_new(x, app);
	in->app = app;
	memcpy(in->id, b->id, sizeof(in->id));
	in->summary = summary;
	in->wanted = q;
	if (r->ops->stats && !sandbox_is_over(b)) {
		r->ops->stats(r, in->id, inspected, in);
		return;
	}
	err_set(&ended, -ESRCH, "it has ended");
	inspected(in, NULL, &ended);
}

static void inspect(struct http_exchange *x, void *app)
{
	begin_inspection(x, app, false);
}

static void summary(struct http_exchange *x, void *app)
{
	begin_inspection(x, app, true);
}

const struct route api_diagnostics_routes[] = {
	{"GET", "/sandboxes/{id}/diagnostics/logs", logs, 0},
	{"GET", "/sandboxes/{id}/diagnostics/events", events, 0},
	{"GET", "/sandboxes/{id}/diagnostics/inspect", inspect, 0},
	{"GET", "/sandboxes/{id}/diagnostics/summary", summary, 0},
	{NULL, NULL, NULL, 0},
};
