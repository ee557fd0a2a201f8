/*
 * server/api_image_files.c - images and snapshots as archives, and their way to registries: import,
 * export, push.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "codec/image_ref.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "codec/url.h"
#include "net/http_server.h"
#include "net/router.h"
#include "server/api_images.h"
#include "server/app.h"
#include "server/config.h"
#include "server/encode_image.h"
#include "server/exchange.h"
#include "server/failure.h"
#include "server/image_import.h"
#include "server/image_out.h"
#include "server/images.h"
#include "server/request_fields.h"
#include "server/routes.h"
#include "server/snapshots.h"
#include "server/uploads.h"

#define BODY_MAX    131072
#define ARCHIVE_MAX (UINT64_C(1) << 50)

/* ---- import ---- */

struct importing {
	struct app *app;
	struct waiting *waiting;
	char *key; /* or NULL */
	char upload[UPLOAD_NAME_MAX];
};

struct imported_images {
	struct app *app;
	struct image **images;
	size_t n;
};

static void importing_free(struct importing *i)
{
	free(i->key);
	free(i);
}

static void write_imported(struct json_writer *w, void *arg)
{
	const struct imported_images *m = arg;

	json_write_object(w);
	json_write_key(w, "items");
	json_write_array(w);
	for (size_t i = 0; i < m->n; i++)
		encode_image(w, m->app, m->images[i]);
	json_write_array_end(w);
	json_write_object_end(w);
}

static void imported(void *arg, struct image **images, size_t n, const struct failure *f)
{
	struct importing *i = arg;
	struct imported_images made = {.app = i->app, .images = images, .n = n};
	struct http_exchange *x = waiting_end(i->waiting);

	upload_remove(i->upload);
	if (x && f)
		failure_reply(x, f);
	else if (x)
		exchange_reply_json(x, 201, write_imported, &made);
	importing_free(i);
}

static void received(void *arg, struct http_exchange *x, const char *upload,
		     const struct failure *f)
{
	struct importing *i = arg;

	if (!x || f) {
		if (x)
			failure_reply(x, f);
		importing_free(i);
		return;
	}
	memcpy(i->upload, upload, strlen(upload) + 1);
	i->waiting = waiting_new(x, i->app);
	image_import(i->app, i->upload, i->key, imported, i);
}

static int read_name(struct http_exchange *x, char **ret, struct failure *f)
{
	struct view query = http_query(x), name, value;
	char key[IMAGE_REF_TEXT_MAX + 1];
	int r;

	while ((r = url_query_next(http_arena(x), &query, &name, &value)) > 0) {
		if (!view_is(name, "name"))
			continue;
		if (api_image_key(value, key, sizeof(key), f) < 0)
			return -1;
		free(*ret);
		*ret = mem_strdup(key);
	}
	return r < 0 ? failure_set(f, 422, REQUEST_CODE, "the query is malformed") : 0;
}

static void import(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct importing *i = mem_new(struct importing);
	uint64_t max = app->config->images_max_image_bytes;
	struct failure f = FAILURE_NONE;

	i->app = app;
	if (read_name(x, &i->key, &f) < 0) {
		failure_reply(x, &f);
		importing_free(i);
		return;
	}
	upload_receive(x, max ? max : ARCHIVE_MAX, received, i);
}

/* ---- what goes out ---- */

/* Of an image, of the host image, or of a snapshot; false: then it was answered. */
static bool content_of_image(struct http_exchange *x, struct app *app,
			     struct image_out_content *ret)
{
	static const struct sandbox_root host = {.host_base = true};
	struct image *m = NULL;

	*ret = (struct image_out_content){.root = &host};
	if (view_is(route_param(x, "id"), IMAGES_HOST))
		return true;
	m = api_image(x, app);
	if (!m)
		return false;
	*ret = (struct image_out_content){
		.root = &m->root, .config = m->config, .names = &m->names};
	return true;
}

static bool content_of_snapshot(struct http_exchange *x, struct app *app,
				struct image_out_content *ret)
{
	struct view id = route_param(x, "snapshotId");
	struct snapshot *s = snapshots_find(app->snapshots, id);
	struct image *m = NULL;

	if (!s) {
		http_reply_error(x, 404, "SNAPSHOT::NOT_FOUND", "there is no snapshot '%.*s'",
				 (int)MIN(id.len, (size_t)64), id.p);
		return false;
	}
	if (s->state != SNAPSHOT_READY) {
		http_reply_error(x, 409, "SNAPSHOT::NOT_READY", "snapshot '%s' is %s, not Ready",
				 s->id, snapshot_state_name(s->state));
		return false;
	}
	if (s->root.image)
		m = images_by_id(app->images, view_of(s->root.image));
	*ret = (struct image_out_content){.root = &s->root, .config = m ? m->config : NULL};
	return true;
}

/* ---- export ---- */

static void exported(void *arg, const char *upload, uint64_t bytes, const struct failure *f)
{
	struct http_exchange *x = waiting_end(arg);
	int fd = upload ? upload_open(upload) : -1;

	/* Open, it can be read although it has no name any more. */
	if (upload)
		upload_remove(upload);
	if (!x) {
		if (fd >= 0)
			fd_close(fd);
		return;
	}
	if (f) {
		failure_reply(x, f);
	} else if (fd < 0) {
		http_reply_error(x, 500, "IMAGE::EXPORT_FAILED", "the archive cannot be read: %s",
				 strerror(-fd));
	} else {
		http_reply_header(x, "Content-Type", VIEW("application/x-tar"));
		http_reply_file(x, 200, fd, 0, bytes);
	}
}

static void export_image(struct http_exchange *x, void *arg)
{
	struct image_out_content c;
	struct app *app = arg;

	if (content_of_image(x, app, &c))
		image_export(app->image_outs, &c, exported, waiting_new(x, app));
}

static void export_snapshot(struct http_exchange *x, void *arg)
{
	struct image_out_content c;
	struct app *app = arg;

	if (content_of_snapshot(x, app, &c))
		image_export(app->image_outs, &c, exported, waiting_new(x, app));
}

/* ---- push ---- */

struct pushing {
	struct waiting *waiting;
	char *key;
	const char *digest;
};

static void write_pushed(struct json_writer *w, void *arg)
{
	const struct pushing *p = arg;

	json_write_object(w);
	json_put_cstr(w, "reference", p->key);
	json_put_cstr(w, "digest", p->digest);
	json_write_object_end(w);
}

static void pushed(void *arg, const char *digest, const struct failure *f)
{
	struct pushing *p = arg;
	struct http_exchange *x = waiting_end(p->waiting);

	p->digest = digest;
	if (x && f)
		failure_reply(x, f);
	else if (x)
		exchange_reply_json(x, 200, write_pushed, p);
	free(p->key);
	free(p);
}

static int read_target(struct view body, char *key, size_t size, char **ret_auth, struct failure *f)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	const struct json *image = NULL;
	struct view uri = VIEW_NONE;
	struct err e = ERR_NONE;

	if (json_parse(body, 0, &v, &e) < 0)
		return failure_set(f, 422, REQUEST_CODE, "the body is not JSON: %s", e.msg);
	if (request_object(v, "image", &image, f) < 0)
		return -1;
	if (!image)
		return failure_set(f, 422, REQUEST_CODE, "image.uri must be given");
	if (request_image(image, &uri, ret_auth, f) < 0 ||
	    api_image_key(view_trim(uri), key, size, f) < 0)
		return -1;
	if (strchr(key, '@'))
		return failure_set(f, 400, REQUEST_CODE,
				   "image.uri: a push needs a tag, not a digest");
	return 0;
}

static void push(struct http_exchange *x, struct app *app, struct view body,
		 const struct image_out_content *c)
{
	osb_cleanup(mem_freep) char *auth = NULL;
	char key[IMAGE_REF_TEXT_MAX + 1];
	struct failure f = FAILURE_NONE;
	struct pushing *p;

	if (read_target(body, key, sizeof(key), &auth, &f) < 0) {
		failure_reply(x, &f);
	} else {
		p = mem_new(struct pushing);
		p->waiting = waiting_new(x, app);
		p->key = mem_strdup(key);
		image_push(app->image_outs, c, key, auth, pushed, p);
	}
	if (auth)
		explicit_bzero(auth, strlen(auth));
}

static void push_image_with_body(struct http_exchange *x, struct view body, void *app)
{
	struct image_out_content c;

	if (content_of_image(x, app, &c))
		push(x, app, body, &c);
}

static void push_snapshot_with_body(struct http_exchange *x, struct view body, void *app)
{
	struct image_out_content c;

	if (content_of_snapshot(x, app, &c))
		push(x, app, body, &c);
}

static void push_image(struct http_exchange *x, void *app)
{
	http_body_collect(x, BODY_MAX, push_image_with_body, app);
}

static void push_snapshot(struct http_exchange *x, void *app)
{
	http_body_collect(x, BODY_MAX, push_snapshot_with_body, app);
}

const struct route api_image_files_routes[] = {
	{"POST", "/images/import", import, 0},
	{"GET", "/images/{id}/export", export_image, 0},
	{"POST", "/images/{id}/push", push_image, 0},
	{"GET", "/snapshots/{snapshotId}/export", export_snapshot, 0},
	{"POST", "/snapshots/{snapshotId}/push", push_snapshot, 0},
	{NULL, NULL, NULL, 0},
};
