/*
 * server/api_volumes.c - /volumes: list, make, get, fill, remove.
 *
 * Routes of our own: the protocol knows volumes only as something that sandboxes mount.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "codec/url.h"
#include "net/http_server.h"
#include "net/router.h"
#include "server/app.h"
#include "server/encode.h"
#include "server/exchange.h"
#include "server/failure.h"
#include "server/page.h"
#include "server/request_fields.h"
#include "server/request_volumes.h"
#include "server/routes.h"
#include "server/sandboxes.h"
#include "server/uploads.h"
#include "server/volumes.h"

#define BODY_MAX 65536
#define SEED_MAX (UINT64_C(64) << 30)

/* What is written of a volume; `bytes` only where it was measured. */
struct shown {
	struct app *app;
	const struct named_volume *volume;
	bool measured;
	uint64_t bytes, files;
};

static bool mounts(const struct sandbox *b, uint64_t number)
{
	for (size_t i = 0; i < b->spec.volumes.n; i++)
		if (b->spec.volumes.v[i].kind == VOLUME_NAMED &&
		    b->spec.volumes.v[i].number == number)
			return true;
	return false;
}

static void write_users(struct json_writer *w, const struct shown *s)
{
	struct sandbox *b = NULL;

	json_write_key(w, "sandboxIds");
	json_write_array(w);
	while (s->volume->users > 0 && (b = sandboxes_next(s->app->sandboxes, b)))
		if (mounts(b, s->volume->number))
			json_write_cstr(w, b->id);
	json_write_array_end(w);
}

static void write_volume(struct json_writer *w, void *arg)
{
	const struct shown *s = arg;
	const struct named_volume *n = s->volume;

	json_write_object(w);
	json_put_cstr(w, "name", n->name);
	json_put_cstr(w, "state", n->busy ? "Busy" : "Ready");
	write_users(w, s);
	if (n->made_by[0])
		json_put_cstr(w, "createdBy", n->made_by);
	if (s->measured) {
		json_put_int(w, "sizeBytes", (int64_t)s->bytes);
		json_put_int(w, "files", (int64_t)s->files);
	}
	encode_time(w, "createdAt", n->created_us);
	json_write_object_end(w);
}

static void not_found(struct http_exchange *x, struct view name)
{
	http_reply_error(x, 404, "VOLUME::NOT_FOUND", "there is no volume '%.*s'",
			 (int)MIN(name.len, (size_t)80), name.p);
}

/* The volume that "{name}" names, or NULL: then 404 was answered. */
static struct named_volume *named(struct http_exchange *x, struct app *app)
{
	struct view name = route_param(x, "name");
	struct named_volume *n = volumes_find(app->volumes, name);

	if (!n)
		not_found(x, name);
	return n;
}

/* ---- list ---- */

struct listing {
	struct app *app;
	struct page page;
};

static void write_page(struct json_writer *w, void *arg)
{
	const struct listing *l = arg;
	struct named_volume *n = NULL;
	uint64_t total = 0;

	json_write_object(w);
	json_write_key(w, "items");
	json_write_array(w);
	while ((n = volumes_next(l->app->volumes, n))) {
		struct shown s = {.app = l->app, .volume = n};

		if (page_holds(&l->page, total++))
			write_volume(w, &s);
	}
	json_write_array_end(w);
	page_write(w, &l->page, total);
	json_write_object_end(w);
}

static void list(struct http_exchange *x, void *app)
{
	struct listing l = {.app = app, .page = PAGE_FIRST};
	struct view query = http_query(x), name, value;
	struct failure f = FAILURE_NONE;
	int r;

	while ((r = url_query_next(http_arena(x), &query, &name, &value)) > 0) {
		if (page_parameter(&l.page, name, value, &f) < 0) {
			failure_reply(x, &f);
			return;
		}
	}
	if (r < 0)
		http_reply_error(x, 422, REQUEST_CODE, "the query is malformed");
	else
		exchange_reply_json(x, 200, write_page, &l);
}

/* ---- make ---- */

static void finish(struct waiting *w, int status, struct named_volume *n, const struct failure *f)
{
	struct shown s = {.app = w->app, .volume = n};
	struct http_exchange *x = waiting_end(w);

	if (!x)
		return;
	if (f)
		failure_reply(x, f);
	else
		exchange_reply_json(x, status, write_volume, &s);
}

static void made(void *arg, struct named_volume *n, const struct failure *f)
{
	finish(arg, 201, n, f);
}

static void make_with_body(struct http_exchange *x, struct view body, void *arg)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct view name = VIEW_NONE;
	struct app *app = arg;
	struct failure f = FAILURE_NONE;
	struct err e = ERR_NONE;

	if (json_parse(body, 0, &v, &e) < 0)
		failure_set(&f, 422, REQUEST_CODE, "the body is not JSON: %s", e.msg);
	else if (json_kind(v) != JSON_OBJECT)
		failure_set(&f, 422, REQUEST_CODE, "the body must be a JSON object");
	else if (request_string(v, "name", &name, &f) == 0 &&
		 !request_volume_name_valid(name, REQUEST_CLAIM_MAX))
		failure_set(&f, 422, "VOLUME::INVALID_PVC_NAME",
			    "name must be given: lower-case letters, digits and '-', at most %d",
			    REQUEST_CLAIM_MAX);
	if (f.status)
		failure_reply(x, &f);
	else
		volumes_make(app->volumes, name, made, waiting_new(x, app));
}

static void make(struct http_exchange *x, void *app)
{
	http_body_collect(x, BODY_MAX, make_with_body, app);
}

/* ---- get ---- */

struct measuring {
	struct waiting *waiting;
	char *name;
};

static void measured(void *arg, uint64_t bytes, uint64_t files, const struct failure *f)
{
	struct measuring *m = arg;
	struct app *app = m->waiting->app;
	struct shown s = {.app = app, .measured = true, .bytes = bytes, .files = files};
	struct http_exchange *x = waiting_end(m->waiting);

	s.volume = volumes_find(app->volumes, view_of(m->name));
	if (x && !s.volume)
		not_found(x, view_of(m->name));
	else if (x && f)
		failure_reply(x, f);
	else if (x)
		exchange_reply_json(x, 200, write_volume, &s);
	free(m->name);
	free(m);
}

static void get(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct named_volume *n = named(x, app);
	struct measuring *m;

	if (!n)
		return;
	m = mem_new(struct measuring);
	m->waiting = waiting_new(x, app);
	m->name = mem_strdup(n->name);
	volumes_measure(app->volumes, n, measured, m);
}

/* ---- fill ---- */

struct seeding {
	struct app *app;
	struct waiting *waiting;
	char *name;
	char upload[UPLOAD_NAME_MAX];
};

static void seeding_free(struct seeding *s)
{
	free(s->name);
	free(s);
}

static void seeded(void *arg, struct named_volume *n, const struct failure *f)
{
	struct seeding *s = arg;

	upload_remove(s->upload);
	finish(s->waiting, 200, n, f);
	seeding_free(s);
}

static void received(void *arg, struct http_exchange *x, const char *upload,
		     const struct failure *f)
{
	struct seeding *s = arg;
	struct named_volume *n = x && !f ? volumes_find(s->app->volumes, view_of(s->name)) : NULL;

	if (n) {
		memcpy(s->upload, upload, strlen(upload) + 1);
		s->waiting = waiting_new(x, s->app);
		volumes_seed(s->app->volumes, n, s->upload, seeded, s);
		return;
	}
	if (x && f)
		failure_reply(x, f);
	else if (x)
		not_found(x, view_of(s->name));
	if (upload)
		upload_remove(upload);
	seeding_free(s);
}

static void seed(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct named_volume *n = named(x, app);
	struct seeding *s;

	if (!n)
		return;
	s = mem_new(struct seeding);
	s->app = app;
	s->name = mem_strdup(n->name);
	upload_receive(x, SEED_MAX, received, s);
}

/* ---- remove ---- */

static void remove_volume(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct named_volume *n = named(x, app);
	struct failure f = FAILURE_NONE;

	if (!n)
		return;
	if (volumes_remove(app->volumes, n, &f) < 0)
		failure_reply(x, &f);
	else
		exchange_reply_empty(x, 204);
}

const struct route api_volumes_routes[] = {
	{"GET", "/volumes", list, 0},
	{"POST", "/volumes", make, 0},
	{"GET", "/volumes/{name}", get, 0},
	{"DELETE", "/volumes/{name}", remove_volume, 0},
	{"PUT", "/volumes/{name}/content", seed, 0},
	{NULL, NULL, NULL, 0},
};
