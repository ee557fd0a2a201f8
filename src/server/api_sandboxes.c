/*
 * server/api_sandboxes.c - /sandboxes: create, get, delete, pause, resume, renew, metadata.
 *
 * A handler decodes, asks the service, encodes.
 */
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "codec/label.h"
#include "codec/rfc3339.h"
#include "net/http_server.h"
#include "net/router.h"
#include "server/app.h"
#include "server/encode.h"
#include "server/exchange.h"
#include "server/failure.h"
#include "server/request_create.h"
#include "server/request_fields.h"
#include "server/routes.h"
#include "server/sandboxes.h"
#include "server/snapshots.h"

#define SMALL_BODY_MAX 65536
#define PATCH_MAX      256

static void write_created(struct json_writer *w, void *arg)
{
	encode_created(w, arg);
}

static void write_sandbox(struct json_writer *w, void *arg)
{
	encode_sandbox(w, arg);
}

/* ---- create ---- */

static void created(void *arg, struct sandbox *b, const struct failure *f)
{
	struct http_exchange *x = waiting_end(arg);

	/* A client that has gone may connect again and delete it, or let it expire. */
	if (!x)
		return;
	if (f)
		failure_reply(x, f);
	else
		exchange_reply_json(x, 202, write_created, b);
}

static void create_with_body(struct http_exchange *x, struct view body, void *arg)
{
	struct app *app = arg;
	struct failure f = FAILURE_NONE;
	struct sandbox_spec spec;
	int64_t timeout_s = 0;

	if (request_create(body, app->config, &spec, &timeout_s, &f) < 0) {
		failure_reply(x, &f);
		return;
	}
	if (snapshots_restore(app->snapshots, &spec, &f) < 0) {
		sandbox_spec_done(&spec);
		failure_reply(x, &f);
		return;
	}
	sandboxes_create(app->sandboxes, &spec, timeout_s, created, waiting_new(x, app));
}

static void create(struct http_exchange *x, void *app)
{
	http_body_collect(x, REQUEST_CREATE_MAX_BYTES, create_with_body, app);
}

/* ---- one sandbox ---- */

static void get(struct http_exchange *x, void *app)
{
	struct sandbox *b = exchange_sandbox(x, app);

	if (b)
		exchange_reply_json(x, 200, write_sandbox, b);
}

static void finish_empty(struct waiting *w, int status, const struct failure *f)
{
	struct http_exchange *x = waiting_end(w);

	if (!x)
		return;
	if (f)
		failure_reply(x, f);
	else
		exchange_reply_empty(x, status);
}

static void deleted(void *arg, struct sandbox *b, const struct failure *f)
{
	(void)b;
	finish_empty(arg, 204, f);
}

static void changed(void *arg, struct sandbox *b, const struct failure *f)
{
	(void)b;
	finish_empty(arg, 202, f);
}

static void delete (struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct sandbox *b = exchange_sandbox(x, app);

	if (b)
		sandboxes_delete(app->sandboxes, b, deleted, waiting_new(x, app));
}

static void pause_sandbox(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct sandbox *b = exchange_sandbox(x, app);

	if (b)
		sandboxes_pause(app->sandboxes, b, changed, waiting_new(x, app));
}

static void resume_sandbox(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct sandbox *b = exchange_sandbox(x, app);

	if (b)
		sandboxes_resume(app->sandboxes, b, changed, waiting_new(x, app));
}

/* ---- renew ---- */

/* A date as text, or Unix seconds as a number. */
static int read_expires(const struct json *v, int64_t *ret_us, struct failure *f)
{
	const struct json *at = json_get(v, "expiresAt");
	struct view text;
	int64_t ns;
	double s;

	if (json_str(at, &text) && rfc3339_parse(text, &ns)) {
		*ret_us = ns / 1000;
		return 0;
	}
	if (json_number(at, &s) && s >= 0 && s < 1e11) {
		*ret_us = (int64_t)(s * 1e6);
		return 0;
	}
	return failure_set(f, 422, REQUEST_CODE,
			   "expiresAt must be a date like \"2030-01-31T12:00:00Z\"");
}

static void write_expires(struct json_writer *w, void *arg)
{
	json_write_object(w);
	encode_time(w, "expiresAt", *(const int64_t *)arg);
	json_write_object_end(w);
}

static int parse_body(struct http_exchange *x, struct view body, struct json **ret)
{
	struct err e = ERR_NONE;

	if (json_parse(body, 0, ret, &e) == 0 && json_kind(*ret) == JSON_OBJECT)
		return 0;
	http_reply_error(x, 422, REQUEST_CODE, "the body must be a JSON object%s%s",
			 e.msg[0] ? ": " : "", e.msg);
	return -1;
}

static void renew_with_body(struct http_exchange *x, struct view body, void *arg)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct app *app = arg;
	struct failure f = FAILURE_NONE;
	struct sandbox *b;
	int64_t expires_us;

	if (parse_body(x, body, &v) < 0)
		return;
	b = exchange_sandbox(x, app);
	if (!b)
		return;
	if (read_expires(v, &expires_us, &f) < 0 ||
	    sandboxes_renew(app->sandboxes, b, expires_us, &f) < 0)
		failure_reply(x, &f);
	else
		exchange_reply_json(x, 200, write_expires, &expires_us);
}

static void renew(struct http_exchange *x, void *app)
{
	http_body_collect(x, SMALL_BODY_MAX, renew_with_body, app);
}

/* ---- metadata ---- */

static int read_patch(const struct json *v, struct sandboxes_patch *patch, struct failure *f)
{
	const struct json *member;
	struct view key;
	void *it = NULL;
	size_t n = 0;

	while (json_next(v, &it, &key, &member)) {
		struct sandboxes_patch *p = &patch[n++];

		*p = (struct sandboxes_patch){.key = key};
		if (json_kind(member) == JSON_NULL)
			p->remove = true;
		else if (!json_str(member, &p->value))
			return failure_set(f, 422, REQUEST_CODE,
					   "metadata values must be strings or null");
		if (request_label(key, p->value, "INVALID_METADATA_LABEL", f) < 0) {
			if (!label_key_reserved(key))
				f->code = "SANDBOX::INVALID_METADATA_LABEL";
			return -1;
		}
	}
	return 0;
}

static void patch_with_body(struct http_exchange *x, struct view body, void *arg)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct sandboxes_patch patch[PATCH_MAX];
	struct app *app = arg;
	struct failure f = FAILURE_NONE;
	struct sandbox *b;

	if (parse_body(x, body, &v) < 0)
		return;
	b = exchange_sandbox(x, app);
	if (!b)
		return;
	if (json_len(v) > PATCH_MAX) {
		http_reply_error(x, 422, REQUEST_CODE, "at most %d keys can be patched at once",
				 PATCH_MAX);
		return;
	}
	if (read_patch(v, patch, &f) < 0 ||
	    sandboxes_patch_metadata(app->sandboxes, b, patch, json_len(v), &f) < 0)
		failure_reply(x, &f);
	else
		exchange_reply_json(x, 200, write_sandbox, b);
}

static void patch_metadata(struct http_exchange *x, void *app)
{
	http_body_collect(x, SMALL_BODY_MAX, patch_with_body, app);
}

const struct route api_sandboxes_routes[] = {
	{"POST", "/sandboxes", create, 0},
	{"GET", "/sandboxes/{id}", get, 0},
	{"DELETE", "/sandboxes/{id}", delete, 0},
	{"PATCH", "/sandboxes/{id}/metadata", patch_metadata, 0},
	{"POST", "/sandboxes/{id}/pause", pause_sandbox, 0},
	{"POST", "/sandboxes/{id}/resume", resume_sandbox, 0},
	{"POST", "/sandboxes/{id}/renew-expiration", renew, 0},
	{NULL, NULL, NULL, 0},
};
