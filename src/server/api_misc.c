/*
 * server/api_misc.c - health, version, the interface's own description, and what SDKs report.
 */
#include "base/err.h"
#include "codec/json.h"
#include "net/http_server.h"
#include "server/openapi.h"
#include "server/request_fields.h"
#include "server/routes.h"
#include "server/version.h"

#define EVENT_MAX_BYTES 16384

static void health(struct http_exchange *x, void *app)
{
	(void)app;
	http_reply(x, 200, "application/json", VIEW("{\"status\":\"healthy\"}"));
}

static void version(struct http_exchange *x, void *app)
{
	(void)app;
	http_reply(x, 200, "application/json", VIEW("{\"version\":\"" OPENSANDBOX_VERSION "\"}"));
}

static void openapi(struct http_exchange *x, void *app)
{
	(void)app;
	http_reply(x, 200, "application/json", view_mem(openapi_json, openapi_json_len));
}

/* SDKs tell how long a create took.  Nothing is kept; a malformed report is still an error. */
static void metrics_event_body(struct http_exchange *x, struct view body, void *app)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct err e = ERR_NONE;
	struct view type = VIEW_NONE;
	int64_t ms = 0;
	bool success = false;

	(void)app;
	if (json_parse(body, 0, &v, &e) < 0 || json_field_string(v, "eventType", &type, &e) < 0 ||
	    json_field_int(v, "createDurationMs", 0, INT64_MAX, &ms, &e) < 0 ||
	    json_field_bool(v, "success", &success, &e) < 0) {
		http_reply_error(x, 400, REQUEST_CODE, "%s", e.msg);
		return;
	}
	if (type.len == 0)
		http_reply_error(x, 400, REQUEST_CODE, "eventType must be given");
	else
		http_reply(x, 204, NULL, VIEW_NONE);
}

static void metrics_event(struct http_exchange *x, void *app)
{
	http_body_collect(x, EVENT_MAX_BYTES, metrics_event_body, app);
}

const struct route api_misc_routes[] = {
	{"GET", "/health", health, ROUTE_OPEN | ROUTE_ROOT_ONLY},
	{"GET", "/version", version, ROUTE_OPEN | ROUTE_ROOT_ONLY},
	{"GET", "/openapi.json", openapi, ROUTE_OPEN | ROUTE_ROOT_ONLY},
	{NULL, NULL, NULL, 0},
};

const struct route api_reports_routes[] = {
	{"POST", "/metrics/events", metrics_event, ROUTE_V1_ONLY},
	{NULL, NULL, NULL, 0},
};
