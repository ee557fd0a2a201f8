/*
 * server/api_images.c - /images: list, get, remove, prune, and the pulls.
 *
 * Routes of our own: the protocol knows images only as something that sandboxes are made from.
 */
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/image_ref.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "codec/url.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/router.h"
#include "server/api_images.h"
#include "server/app.h"
#include "server/encode_image.h"
#include "server/exchange.h"
#include "server/failure.h"
#include "server/image_keeper.h"
#include "server/images.h"
#include "server/page.h"
#include "server/pulls.h"
#include "server/request_fields.h"
#include "server/routes.h"

#define BODY_MAX   131072
#define WAIT_MAX_S 3600

struct image *api_image(struct http_exchange *x, struct app *app)
{
	struct view id = route_param(x, "id");
	struct image *m = images_find(app->images, id);

	if (!m)
		http_reply_error(x, 404, "IMAGE::NOT_FOUND", "there is no image '%.*s' here",
				 (int)MIN(id.len, (size_t)120), id.p);
	return m;
}

int api_image_key(struct view name, char *ret, size_t size, struct failure *f)
{
	struct err e = ERR_NONE;
	struct image_ref ref;

	if (view_is(name, IMAGES_HOST))
		return failure_set(f, 400, REQUEST_CODE, "'host' is the name of the host image");
	if (image_ref_parse(name, &ref, &e) < 0)
		return failure_set(f, 400, REQUEST_CODE, "%s", e.msg);
	images_key(&ref, ret, size);
	return 0;
}

/* ---- list and get ---- */

struct listing {
	struct app *app;
	struct page page;
};

static int read_page(struct http_exchange *x, struct page *page, struct failure *f)
{
	struct view query = http_query(x), name, value;
	int r;

	while ((r = url_query_next(http_arena(x), &query, &name, &value)) > 0)
		if (page_parameter(page, name, value, f) < 0)
			return -1;
	return r < 0 ? failure_set(f, 422, REQUEST_CODE, "the query is malformed") : 0;
}

static void write_images(struct json_writer *w, void *arg)
{
	const struct listing *l = arg;
	struct image *m = NULL;
	uint64_t total = 0;

	json_write_object(w);
	json_write_key(w, "items");
	json_write_array(w);
	while ((m = images_next(l->app->images, m)))
		if (page_holds(&l->page, total++))
			encode_image(w, l->app, m);
	if (page_holds(&l->page, total++))
		encode_host_image(w, l->app);
	json_write_array_end(w);
	page_write(w, &l->page, total);
	json_write_object_end(w);
}

static void list(struct http_exchange *x, void *app)
{
	struct listing l = {.app = app, .page = PAGE_FIRST};
	struct failure f = FAILURE_NONE;

	if (read_page(x, &l.page, &f) < 0)
		failure_reply(x, &f);
	else
		exchange_reply_json(x, 200, write_images, &l);
}

struct shown {
	struct app *app;
	struct image *image; /* NULL: the host image */
};

static void write_image(struct json_writer *w, void *arg)
{
	const struct shown *s = arg;

	if (s->image)
		encode_image(w, s->app, s->image);
	else
		encode_host_image(w, s->app);
}

static void get(struct http_exchange *x, void *app)
{
	struct shown s = {.app = app};

	if (!view_is(route_param(x, "id"), IMAGES_HOST) && !(s.image = api_image(x, app)))
		return;
	exchange_reply_json(x, 200, write_image, &s);
}

/* ---- remove ---- */

static int read_force(struct http_exchange *x, bool *ret, struct failure *f)
{
	struct view query = http_query(x), name, value;
	int r;

	while ((r = url_query_next(http_arena(x), &query, &name, &value)) > 0) {
		if (!view_is(name, "force"))
			continue;
		if (!view_iis(value, "true") && !view_iis(value, "false"))
			return failure_set(f, 422, REQUEST_CODE, "force must be true or false");
		*ret = view_iis(value, "true");
	}
	return r < 0 ? failure_set(f, 422, REQUEST_CODE, "the query is malformed") : 0;
}

/* Is it a name of the image, and does that have others with a tag? */
static bool is_one_of_names(const struct image *m, const char *key)
{
	size_t others = 0;
	bool named = false;

	for (size_t i = 0; i < m->names.len; i++) {
		if (strcmp(m->names.v[i], key) == 0)
			named = true;
		else if (!strchr(m->names.v[i], '@'))
			others++;
	}
	return named && others > 0;
}

/* By one of several names: the image stays under the others. */
static int remove_named(struct app *app, struct image *m, struct view id, bool force,
			struct failure *f)
{
	char key[IMAGE_REF_TEXT_MAX + 1];
	struct failure no_name = FAILURE_NONE;
	struct err e = ERR_NONE;
	int r;

	if (api_image_key(id, key, sizeof(key), &no_name) == 0 && is_one_of_names(m, key)) {
		r = images_unname(app->images, key, &e);
	} else if (m->users > 0 && !force) {
		return failure_set(f, 409, "IMAGE::IN_USE",
				   "%u sandboxes or snapshots use this image; with force=true its "
				   "names go at once and its files when they are gone",
				   m->users);
	} else {
		r = images_remove(app->images, m, &e);
	}
	return r < 0 ? failure_set(f, 500, "SANDBOX::INTERNAL_ERROR", "%s", e.msg) : 0;
}

static void remove_image(struct http_exchange *x, void *app)
{
	struct view id = route_param(x, "id");
	struct failure f = FAILURE_NONE;
	struct image *m = NULL;
	bool force = false;

	if (view_is(id, IMAGES_HOST))
		failure_set(&f, 409, "IMAGE::IN_USE", "the host image cannot be removed");
	else if (read_force(x, &force, &f) == 0 && !(m = api_image(x, app)))
		return;
	if (m && remove_named(app, m, id, force, &f) == 0)
		exchange_reply_empty(x, 204);
	else
		failure_reply(x, &f);
}

/* ---- prune ---- */

struct pruning {
	struct strv removed;
	uint64_t bytes;
};

static bool has_tag(const struct image *m)
{
	for (size_t i = 0; i < m->names.len; i++)
		if (!strchr(m->names.v[i], '@'))
			return true;
	return false;
}

static int prune_images(struct app *app, bool all, struct pruning *p, struct err *e)
{
	struct image *m = images_next(app->images, NULL), *next;

	for (; m; m = next) {
		uint64_t bytes = image_own_bytes(app, m);

		next = images_next(app->images, m);
		if (m->users > 0 || (!all && has_tag(m)))
			continue;
		strv_add(&p->removed, m->id);
		if (images_remove(app->images, m, e) < 0)
			return -1;
		p->bytes += bytes;
	}
	return 0;
}

static void write_pruned(struct json_writer *w, void *arg)
{
	const struct pruning *p = arg;

	json_write_object(w);
	json_write_key(w, "removed");
	json_write_array(w);
	for (size_t i = 0; i < p->removed.len; i++)
		json_write_cstr(w, p->removed.v[i]);
	json_write_array_end(w);
	json_put_int(w, "reclaimedBytes", (int64_t)p->bytes);
	json_write_object_end(w);
}

/* An empty body is an empty object. */
static int parse_body(struct view body, struct json **ret, struct failure *f)
{
	struct err e = ERR_NONE;

	if (json_parse(view_trim(body).len ? body : VIEW("{}"), 0, ret, &e) < 0)
		return failure_set(f, 422, REQUEST_CODE, "the body is not JSON: %s", e.msg);
	if (json_kind(*ret) != JSON_OBJECT)
		return failure_set(f, 422, REQUEST_CODE, "the body must be a JSON object");
	return 0;
}

static void prune_with_body(struct http_exchange *x, struct view body, void *app)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct pruning p = {.removed = STRV_INIT};
	struct failure f = FAILURE_NONE;
	struct err e = ERR_NONE;
	bool all = false;

	if (parse_body(body, &v, &f) == 0 && request_bool(v, "all", &all, &f) == 0 &&
	    prune_images(app, all, &p, &e) < 0)
		failure_set(&f, 500, "SANDBOX::INTERNAL_ERROR", "%s", e.msg);
	if (f.status)
		failure_reply(x, &f);
	else
		exchange_reply_json(x, 200, write_pruned, &p);
	strv_done(&p.removed);
}

static void prune(struct http_exchange *x, void *app)
{
	http_body_collect(x, BODY_MAX, prune_with_body, app);
}

/* ---- pull ---- */

/* A client that waits for a pull. */
struct patience {
	struct waiting *waiting;
	struct pull_wait wait;
	struct loop_timer *timer;
	char id[40];
};

static void write_pull(struct json_writer *w, void *arg)
{
	encode_pull(w, arg);
}

static struct http_exchange *patience_end(struct patience *p)
{
	struct http_exchange *x = waiting_end(p->waiting);

	pulls_leave(&p->wait);
	loop_timer_free(p->timer);
	return x;
}

static void waited(void *arg, struct image *image, const struct failure *f)
{
	struct patience *p = arg;
	struct app *app = p->waiting->app;
	struct pull *pull = pulls_find(app->pulls, view_of(p->id));
	struct http_exchange *x = patience_end(p);

	(void)image;
	if (x && f)
		failure_reply(x, f);
	else if (x)
		exchange_reply_json(x, 200, write_pull, pull);
	free(p);
}

static void wait_is_over(void *arg)
{
	struct patience *p = arg;
	struct pull *pull = p->wait.pull;
	struct http_exchange *x = patience_end(p);

	if (x)
		exchange_reply_json(x, 202, write_pull, pull);
	free(p);
}

static void begin_wait(struct http_exchange *x, struct app *app, struct pull *pull,
		       const char *auth, int64_t seconds)
{
	struct patience *p = mem_new(struct patience);

	p->waiting = waiting_new(x, app);
	memcpy(p->id, pull->id, sizeof(p->id));
	p->wait.ended = waited;
	p->wait.arg = p;
	p->timer = loop_timer_new(app->loop, wait_is_over, p);
	loop_timer_start(p->timer, (uint64_t)seconds * 1000);
	pulls_wait(app->pulls, pull->key, auth, &p->wait);
}

static void pull_with_body(struct http_exchange *x, struct view body, void *arg)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	osb_cleanup(mem_freep) char *auth = NULL;
	const struct json *image = NULL;
	char key[IMAGE_REF_TEXT_MAX + 1];
	struct view uri = VIEW_NONE;
	struct failure f = FAILURE_NONE;
	struct err e = ERR_NONE;
	struct app *app = arg;
	struct pull *pull = NULL;
	int64_t wait_s = 0;

	if (parse_body(body, &v, &f) == 0 && request_object(v, "image", &image, &f) == 0 &&
	    request_image(image, &uri, &auth, &f) == 0 &&
	    json_field_int(v, "wait", 0, WAIT_MAX_S, &wait_s, &e) < 0)
		failure_set(&f, 422, REQUEST_CODE, "%s", e.msg);
	if (!f.status && api_image_key(view_trim(uri), key, sizeof(key), &f) == 0)
		pull = pulls_ask(app->pulls, key, auth, &f);
	if (!pull)
		failure_reply(x, &f);
	else if (wait_s > 0)
		begin_wait(x, app, pull, auth, wait_s);
	else
		exchange_reply_json(x, 202, write_pull, pull);
	if (auth)
		explicit_bzero(auth, strlen(auth));
}

static void pull(struct http_exchange *x, void *app)
{
	http_body_collect(x, BODY_MAX, pull_with_body, app);
}

static void write_pulls(struct json_writer *w, void *arg)
{
	const struct listing *l = arg;
	struct pull *p = NULL;
	uint64_t total = 0;

	json_write_object(w);
	json_write_key(w, "items");
	json_write_array(w);
	while ((p = pulls_next(l->app->pulls, p)))
		if (page_holds(&l->page, total++))
			encode_pull(w, p);
	json_write_array_end(w);
	page_write(w, &l->page, total);
	json_write_object_end(w);
}

static void list_pulls(struct http_exchange *x, void *app)
{
	struct listing l = {.app = app, .page = PAGE_FIRST};
	struct failure f = FAILURE_NONE;

	if (read_page(x, &l.page, &f) < 0)
		failure_reply(x, &f);
	else
		exchange_reply_json(x, 200, write_pulls, &l);
}

static struct pull *named_pull(struct http_exchange *x, struct app *app)
{
	struct view id = route_param(x, "pullId");
	struct pull *p = pulls_find(app->pulls, id);

	if (!p)
		http_reply_error(x, 404, "IMAGE::PULL_NOT_FOUND", "there is no pull '%.*s'",
				 (int)MIN(id.len, (size_t)64), id.p);
	return p;
}

static void get_pull(struct http_exchange *x, void *app)
{
	struct pull *p = named_pull(x, app);

	if (p)
		exchange_reply_json(x, 200, write_pull, p);
}

static void cancel_pull(struct http_exchange *x, void *app)
{
	struct pull *p = named_pull(x, app);

	if (!p)
		return;
	pulls_cancel(p);
	exchange_reply_empty(x, 204);
}

const struct route api_images_routes[] = {
	{"GET", "/images", list, 0},
	{"GET", "/images/{id}", get, 0},
	{"DELETE", "/images/{id}", remove_image, 0},
	{"POST", "/images/prune", prune, 0},
	{"POST", "/images/pull", pull, 0},
	{"GET", "/images/pulls", list_pulls, 0},
	{"GET", "/images/pulls/{pullId}", get_pull, 0},
	{"DELETE", "/images/pulls/{pullId}", cancel_pull, 0},
	{NULL, NULL, NULL, 0},
};
