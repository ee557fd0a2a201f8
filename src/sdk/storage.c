/*
 * sdk/storage.c - images and volumes.
 */
#include <opensandbox/storage.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "sdk/asking.h"
#include "sdk/fail.h"
#include "sdk/transfer.h"
#include "sdk/wire.h"

#define BODY_MAX    (64u << 10)
#define INTERVAL_MS 250

static int get_text(osb_client *c, const char *path, const char *name, const osb_call *call,
		    char **ret, osb_error *e)
{
	struct asking q;
	int r;

	asking_server(c, "GET", path, &q);
	asking_segment(&q, name, "");
	r = asking_text(c, &q, call, ret, e);
	asking_done(&q);
	return r;
}

static int list(osb_client *c, const char *path, int page, int page_size, const osb_call *call,
		char **ret, osb_error *e)
{
	struct asking q;
	int r;

	asking_server(c, "GET", path, &q);
	asking_number(&q, "page", page);
	asking_number(&q, "pageSize", page_size);
	r = asking_text(c, &q, call, ret, e);
	asking_done(&q);
	return r;
}

/* ---- images ---- */

int osb_image_list(osb_client *c, int page, int page_size, const osb_call *call, char **ret_json,
		   osb_error *e)
{
	return list(c, "/images", page, page_size, call, ret_json, e);
}

int osb_image_get(osb_client *c, const char *name, const osb_call *call, char **ret_json,
		  osb_error *e)
{
	return get_text(c, "/images", name, call, ret_json, e);
}

static int write_target(const char *name, const osb_registry_auth *auth, struct buf *out,
			osb_error *e)
{
	struct json_writer w;

	json_writer_init(&w, out);
	json_write_object(&w);
	json_write_key(&w, "image");
	json_write_object(&w);
	json_put_cstr(&w, "uri", name);
	if (auth && auth->username) {
		json_write_key(&w, "auth");
		json_write_object(&w);
		json_put_cstr(&w, "username", auth->username);
		json_put_cstr(&w, "password", auth->password ? auth->password : "");
		json_write_object_end(&w);
	}
	json_write_object_end(&w);
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? fail(e, OSB_ERR_INVALID, "the image's name is too long")
				       : 0;
}

/* 1 = it is here, 0 = on its way. */
static int look_at_pull(struct document *d, osb_pull_fn *fn, void *arg, osb_error *e)
{
	const struct json *progress = json_get(d->json, "progress");
	const char *message = document_str(d, d->json, "message");
	osb_pull_progress p = {
		.state = document_str(d, d->json, "state"),
		.done = document_int(progress, "bytes"),
		.total = document_int(progress, "total"),
		.json = d->text,
	};

	if (!p.state)
		return fail(e, OSB_ERR_PROTOCOL, "the server does not say how far the pull is");
	p.total = p.total ? p.total : -1;
	if (fn && fn(arg, &p) != 0)
		return fail(e, OSB_ERR_CANCELLED, "the call was ended by its handler");
	if (strcmp(p.state, "Failed") == 0)
		return fail(e, OSB_ERR_ENDED, "%s", message ? message : "the pull has failed");
	return strcmp(p.state, "Ready") == 0;
}

/* Until it has ended; `d` is the last that was heard of it. */
static int watch_pull(osb_client *c, struct document *d, osb_pull_fn *fn, void *arg,
		      const osb_call *call, osb_error *e)
{
	osb_cleanup(mem_freep) char *id = NULL;
	int r = look_at_pull(d, fn, arg, e);

	id = mem_strdup(r == 0 && document_str(d, d->json, "id") ? document_str(d, d->json, "id")
								 : "");
	while (r == 0) {
		struct asking q;

		wire_sleep(INTERVAL_MS, call ? call->cancel : NULL);
		document_done(d);
		asking_server(c, "GET", "/images/pulls", &q);
		asking_segment(&q, id, "");
		q.ask.target = buf_view(&q.target);
		r = document_ask(c, &q.ask, call, d, e);
		asking_done(&q);
		if (r == 0)
			r = look_at_pull(d, fn, arg, e);
	}
	return r < 0 ? r : 0;
}

int osb_image_pull(osb_client *c, const char *name, const osb_registry_auth *auth, osb_pull_fn *fn,
		   void *arg, const osb_call *call, char **ret_json, osb_error *e)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct document d;
	struct asking q;
	int r = write_target(name, auth, &body, e);

	if (r < 0)
		return r;
	asking_server(c, "POST", "/images/pull", &q);
	asking_json(&q, &body);
	q.ask.target = buf_view(&q.target);
	q.ask.twice = true; /* whoever asks twice shares the pull */
	r = document_ask(c, &q.ask, call, &d, e);
	if (r == 0) {
		r = watch_pull(c, &d, fn, arg, call, e);
		if (r == 0 && ret_json)
			*ret_json = mem_strdup(d.text);
		document_done(&d);
	}
	asking_done(&q);
	return r;
}

int osb_image_delete(osb_client *c, const char *name, bool force, const osb_call *call,
		     osb_error *e)
{
	struct asking q;
	int r;

	asking_server(c, "DELETE", "/images", &q);
	asking_segment(&q, name, "");
	asking_param(&q, "force", force ? "true" : NULL);
	r = asking_do(c, &q, call, e);
	asking_done(&q);
	return r;
}

int osb_image_prune(osb_client *c, bool all, const osb_call *call, char **ret_json, osb_error *e)
{
	return osb_request(c, "POST", "/images/prune", all ? "{\"all\":true}" : "{}", call,
			   ret_json, e);
}

int osb_image_import(osb_client *c, int fd, const char *name, const osb_transfer *transfer,
		     const osb_call *call, char **ret_json, osb_error *e)
{
	struct asking q;
	int r;

	asking_server(c, "POST", "/images/import", &q);
	asking_param(&q, "name", name);
	r = transfer_send(c, &q, fd, transfer, call, ret_json, e);
	asking_done(&q);
	return r;
}

static int export(osb_client *c, const char *path, const char *name, int fd,
		  const osb_transfer *transfer, const osb_call *call, osb_error *e)
{
	struct transfer t = {.how = transfer, .total = -1, .fd = fd};
	struct asking q;
	int r;

	asking_server(c, "GET", path, &q);
	asking_segment(&q, name, "/export");
	r = transfer_receive(c, &q, &t, 0, call, e);
	asking_done(&q);
	return r;
}

int osb_image_export(osb_client *c, const char *name, int fd, const osb_transfer *transfer,
		     const osb_call *call, osb_error *e)
{
	return export(c, "/images", name, fd, transfer, call, e);
}

int osb_snapshot_export(osb_client *c, const char *id, int fd, const osb_transfer *transfer,
			const osb_call *call, osb_error *e)
{
	return export(c, "/snapshots", id, fd, transfer, call, e);
}

int osb_image_push(osb_client *c, const char *name, const char *as, const osb_registry_auth *auth,
		   const osb_call *call, osb_error *e)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	osb_call own = transfer_call(call);
	struct asking q;
	int r = write_target(as ? as : name, auth, &body, e);

	if (r < 0)
		return r;
	asking_server(c, "POST", "/images", &q);
	asking_segment(&q, name, "/push");
	asking_json(&q, &body);
	r = asking_do(c, &q, &own, e);
	asking_done(&q);
	return r;
}

/* ---- volumes ---- */

int osb_volume_list(osb_client *c, int page, int page_size, const osb_call *call, char **ret_json,
		    osb_error *e)
{
	return list(c, "/volumes", page, page_size, call, ret_json, e);
}

int osb_volume_create(osb_client *c, const char *name, const osb_call *call, char **ret_json,
		      osb_error *e)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct json_writer w;

	json_writer_init(&w, &body);
	json_write_object(&w);
	json_put_cstr(&w, "name", name);
	json_write_object_end(&w);
	if (json_writer_end(&w) < 0)
		return fail(e, OSB_ERR_INVALID, "the volume's name is too long");
	return osb_request(c, "POST", "/volumes", buf_str(&body), call, ret_json, e);
}

int osb_volume_get(osb_client *c, const char *name, const osb_call *call, char **ret_json,
		   osb_error *e)
{
	return get_text(c, "/volumes", name, call, ret_json, e);
}

int osb_volume_delete(osb_client *c, const char *name, const osb_call *call, osb_error *e)
{
	struct asking q;
	int r;

	asking_server(c, "DELETE", "/volumes", &q);
	asking_segment(&q, name, "");
	r = asking_do(c, &q, call, e);
	asking_done(&q);
	return r;
}

int osb_volume_fill(osb_client *c, const char *name, int fd, const osb_transfer *transfer,
		    const osb_call *call, char **ret_json, osb_error *e)
{
	struct asking q;
	int r;

	asking_server(c, "PUT", "/volumes", &q);
	asking_segment(&q, name, "/content");
	r = transfer_send(c, &q, fd, transfer, call, ret_json, e);
	asking_done(&q);
	return r;
}
