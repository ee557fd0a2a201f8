/*
 * sdk/sandbox_create.c - a new sandbox, and waiting until it answers.
 */
#include <opensandbox/sandbox.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "sdk/client_int.h"
#include "sdk/document.h"
#include "sdk/fail.h"
#include "sdk/sandbox_int.h"
#include "sdk/wire.h"

#define BODY_MAX    (8u << 20)
#define TIMEOUT_S   600
#define READY_MS    30000
#define FIRST_MS    5 /* between two looks at first; then twice as long each time, up to */
#define INTERVAL_MS 200

/* ---- the request ---- */

static void put_pairs(struct json_writer *w, const char *key, const osb_pair *v, size_t n)
{
	if (!v)
		return;
	json_write_key(w, key);
	json_write_object(w);
	for (size_t i = 0; i < n; i++)
		json_put_cstr(w, v[i].name, v[i].value);
	json_write_object_end(w);
}

/* JSON that the caller has written. */
static int put_text(struct json_writer *w, const char *key, const char *text, osb_error *e)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct err why = ERR_NONE;

	if (!text)
		return 0;
	if (json_parse(view_of(text), 0, &v, &why) < 0)
		return fail(e, OSB_ERR_INVALID, "%s: %s", key, why.msg);
	json_write_key(w, key);
	json_write_text(w, view_of(text));
	return 0;
}

static void put_image(struct json_writer *w, const osb_create *o)
{
	if (o->snapshot_id) {
		json_put_cstr(w, "snapshotId", o->snapshot_id);
		return;
	}
	json_write_key(w, "image");
	json_write_object(w);
	json_put_cstr(w, "uri", o->image);
	if (o->image_username) {
		json_write_key(w, "auth");
		json_write_object(w);
		json_put_cstr(w, "username", o->image_username);
		json_put_cstr(w, "password", o->image_password ? o->image_password : "");
		json_write_object_end(w);
	}
	json_write_object_end(w);
}

static void put_entrypoint(struct json_writer *w, const char *const *v)
{
	static const char *const waits[] = {"tail", "-f", "/dev/null", NULL};

	json_write_key(w, "entrypoint");
	json_write_array(w);
	for (v = v ? v : waits; *v; v++)
		json_write_cstr(w, *v);
	json_write_array_end(w);
}

static void put_limits(struct json_writer *w, const osb_create *o)
{
	static const osb_pair usual[] = {{"cpu", "1"}, {"memory", "2Gi"}};

	if (o->resource_limits)
		put_pairs(w, "resourceLimits", o->resource_limits, o->resource_limits_n);
	else
		put_pairs(w, "resourceLimits", usual, ARRAY_LEN(usual));
}

static int write_request(const osb_create *o, struct buf *out, osb_error *e)
{
	struct json_writer w;

	json_writer_init(&w, out);
	json_write_object(&w);
	put_image(&w, o);
	put_entrypoint(&w, o->entrypoint);
	json_write_key(&w, "timeout");
	if (o->timeout_s == OSB_NEVER)
		json_write_null(&w);
	else
		json_write_int(&w, o->timeout_s ? o->timeout_s : TIMEOUT_S);
	put_limits(&w, o);
	put_pairs(&w, "env", o->env, o->env_n);
	put_pairs(&w, "metadata", o->metadata, o->metadata_n);
	put_pairs(&w, "extensions", o->extensions, o->extensions_n);
	if (put_text(&w, "networkPolicy", o->network_policy, e) < 0 ||
	    put_text(&w, "volumes", o->volumes, e) < 0 ||
	    put_text(&w, "lifecycle", o->lifecycle, e) < 0 ||
	    put_text(&w, "platform", o->platform, e) < 0 ||
	    put_text(&w, "resourceRequests", o->resource_requests, e) < 0)
		return (int)OSB_ERR_INVALID;
	if (o->secure_access)
		json_put_bool(&w, "secureAccess", true);
	if (o->credential_proxy) {
		json_write_key(&w, "credentialProxy");
		json_write_object(&w);
		json_put_bool(&w, "enabled", true);
		json_write_object_end(&w);
	}
	json_write_object_end(&w);
	return json_writer_end(&w) < 0
		       ? fail(e, OSB_ERR_INVALID, "the request is larger than %u bytes", BODY_MAX)
		       : 0;
}

/* Members that an older program does not know are 0. */
static int understand(const osb_create *what, osb_create *ret, osb_error *e)
{
	*ret = (osb_create)OSB_CREATE_INIT;
	if (!what || what->size == 0)
		return fail(e, OSB_ERR_INVALID, "an osb_create begins with OSB_CREATE_INIT");
	memcpy(ret, what, MIN(what->size, sizeof(*ret)));
	if (!ret->image == !ret->snapshot_id)
		return fail(e, OSB_ERR_INVALID,
			    "a sandbox is made from an image or from a snapshot: name one of them");
	return 0;
}

static int ask_for_one(osb_client *c, const osb_create *o, const osb_call *call, osb_sandbox **ret,
		       osb_error *e)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct ask_part part = {.fd = -1};
	struct ask q = {
		.method = "POST",
		.to = &c->server,
		.target = VIEW("/sandboxes"),
		.with_key = true,
		.content_type = "application/json",
		.parts = &part,
		.parts_n = 1,
	};
	struct document d;
	const char *id;
	int r = write_request(o, &body, e);

	if (r < 0)
		return r;
	part.bytes = buf_view(&body);
	r = document_ask(c, &q, call, &d, e);
	if (o->image_password)
		explicit_bzero(body.mem, body.cap);
	if (r < 0)
		return r;
	id = document_str(&d, d.json, "id");
	r = id ? osb_sandbox_open(c, id, ret, e)
	       : fail(e, OSB_ERR_PROTOCOL, "the server's answer names no sandbox");
	document_done(&d);
	return r < 0 ? r : 0;
}

int osb_sandbox_create(osb_client *c, const osb_create *what, const osb_call *call,
		       osb_sandbox **ret, osb_error *e)
{
	osb_sandbox *s = NULL;
	osb_create o;
	int r;

	fail_none(e);
	r = understand(what, &o, e);
	if (r == 0)
		r = ask_for_one(c, &o, call, &s, e);
	if (r == 0 && s && !o.skip_ready) {
		r = osb_sandbox_wait_ready(s, o.ready_timeout_ms, call, e);
		/* Nobody could find it again. */
		if (r < 0)
			(void)osb_sandbox_kill(s, NULL, NULL);
	}
	if (r < 0)
		osb_sandbox_free(s);
	else
		*ret = s;
	return r;
}

/* ---- until it answers ---- */

/* It will never answer: why? */
static int check_ended(osb_sandbox *s, const osb_call *call, osb_error *e)
{
	osb_sandbox_info *info = NULL;
	osb_error ignored;
	int r = 0;

	if (osb_sandbox_get(s, call, &info, &ignored) < 0) {
		if (ignored.code != OSB_ERR_NOT_FOUND && ignored.code != OSB_ERR_UNAUTHORIZED)
			return 0;
		if (e)
			*e = ignored;
		return (int)ignored.code;
	}
	if (strcmp(info->state, "Failed") == 0 || strcmp(info->state, "Terminated") == 0)
		r = fail(e, OSB_ERR_ENDED, "sandbox '%s' is %s: %s", s->id, info->state,
			 info->message ? info->message : "no reason was given");
	osb_sandbox_info_free(info);
	return r;
}

int osb_sandbox_wait_ready(osb_sandbox *s, uint32_t timeout_ms, const osb_call *call, osb_error *e)
{
	uint64_t end = clock_mono_us() + (uint64_t)(timeout_ms ? timeout_ms : READY_MS) * 1000;
	uint64_t pause_ms = FIRST_MS;

	for (;;) {
		int r = osb_sandbox_ping(s, call, e);

		if (r == 0 || r == OSB_ERR_CANCELLED || r == OSB_ERR_UNAUTHORIZED)
			return r;
		r = check_ended(s, call, e);
		if (r < 0)
			return r;
		if (clock_mono_us() + pause_ms * 1000 >= end)
			return fail(e, OSB_ERR_TIMEOUT, "sandbox '%s' is not ready after %u ms",
				    s->id, timeout_ms ? timeout_ms : READY_MS);
		wire_sleep(pause_ms, call ? call->cancel : NULL);
		pause_ms = MIN(pause_ms * 2, (uint64_t)INTERVAL_MS);
	}
}
