/*
 * server/image_keeper.c - limits of size and age, once a minute and after every new image;
 * leftovers, once at the start.
 */
#include "server/image_keeper.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/json_writer.h"
#include "net/loop.h"
#include "server/app.h"
#include "server/blobs.h"
#include "server/config.h"
#include "server/images.h"
#include "server/jobs.h"
#include "server/layers.h"
#include "server/pulls.h"
#include "server/volumes.h"
#include "store/store_images.h"

#define LOOK_MS	    60000
#define SOON_MS	    500
#define LEFTOVERS_S 86400 /* a pull that failed may be tried again with what it got */

struct image_keeper {
	struct app *app;
	struct loop_timer *look, *soon;
};

uint64_t image_own_bytes(struct app *app, const struct image *image)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < image->root.layers_n; i++) {
		const struct layer *l = layers_get(app->layers, image->root.layers[i]);

		if (l && l->users == 1)
			sum += l->bytes;
	}
	return sum;
}

/* ---- limits ---- */

static struct image *longest_unused(struct app *app)
{
	struct image *found = NULL;

	for (struct image *m = NULL; (m = images_next(app->images, m));)
		if (m->users == 0 && (!found || m->used_us < found->used_us))
			found = m;
	return found;
}

static void look(void *arg)
{
	struct image_keeper *k = arg;
	struct app *app = k->app;
	int64_t now = (int64_t)(clock_wall_ns() / 1000);
	int64_t age_us = app->config->images_max_age_seconds * 1000000;
	uint64_t bytes = layers_image_bytes(app->layers), max = app->config->images_max_bytes;
	struct err e = ERR_NONE;
	struct image *m;

	while ((m = longest_unused(app))) {
		bool old = age_us && now - m->used_us > age_us;
		bool much = max && bytes > max;

		if (!old && !much)
			break;
		bytes -= MIN(bytes, image_own_bytes(app, m));
		log_line(LOG_INFO, "removing an image that nobody uses",
			 LOG_S("image", m->names.len ? m->names.v[0] : m->id),
			 LOG_S("because", old ? "of its age" : "of the size of all images"));
		if (images_remove(app->images, m, &e) < 0) {
			log_line(LOG_ERROR, "cannot remove an image", LOG_S("err", e.msg));
			break;
		}
	}
	blobs_sweep(LEFTOVERS_S);
}

/* ---- the start ---- */

static void cleaned(void *arg, const struct json *result)
{
	(void)arg;
	(void)result;
	log_line(LOG_DEBUG, "leftovers of images and volumes are removed");
}

static void not_cleaned(void *arg, const char *code, const char *message)
{
	(void)arg;
	log_line(LOG_WARN, "cannot remove leftovers, the next start will", LOG_S("code", code),
		 LOG_S("err", message));
}

static const struct job_events clean_events = {.done = cleaned, .failed = not_cleaned};

static int put_next(struct json_writer *w, struct app *app, const char *kind, const char *key,
		    struct err *e)
{
	uint64_t next = 0;
	int r = store_take_numbers(app->store, kind, 0, &next, e);

	if (r == 0)
		json_put_int(w, key, (int64_t)next);
	return r;
}

static void clean(struct app *app)
{
	osb_cleanup(buf_done) struct buf request = BUF_INIT(JOB_REQUEST_MAX);
	const struct layer *layer;
	struct err e = ERR_NONE;
	struct json_writer w;
	size_t pos = 0;
	int r;

	json_writer_init(&w, &request);
	json_write_object(&w);
	json_put_cstr(&w, "op", "clean");
	json_write_key(&w, "keep_layers");
	json_write_array(&w);
	while ((layer = layers_next(app->layers, &pos)))
		json_write_uint(&w, layer->number);
	json_write_array_end(&w);
	json_write_key(&w, "keep_volumes");
	json_write_array(&w);
	volumes_write_numbers(app->volumes, &w);
	json_write_array_end(&w);
	r = put_next(&w, app, "layer", "next_layer", &e);
	if (r == 0)
		r = put_next(&w, app, "volume", "next_volume", &e);
	json_write_object_end(&w);
	if (r == 0)
		r = json_writer_end(&w);
	if (r < 0)
		not_cleaned(NULL, "INTERNAL", e.msg[0] ? e.msg : "there are too many layers");
	else
		(void)job_start(app->jobs, JOB_HEAVY, buf_view(&request), &clean_events, NULL);
}

static void added(void *arg)
{
	struct image_keeper *k = arg;

	if (!loop_timer_active(k->soon))
		loop_timer_start(k->soon, SOON_MS);
}

void image_keeper_begin(struct image_keeper *k)
{
	struct app *app = k->app;

	clean(app);
	blobs_sweep(LEFTOVERS_S);
	pulls_resume(app->pulls);
	layers_release(app->layers);
	loop_timer_repeat(k->look, LOOK_MS);
}

struct image_keeper *image_keeper_new(struct app *app)
{
	struct image_keeper *k = mem_new(struct image_keeper);

	k->app = app;
	k->look = loop_timer_new(app->loop, look, k);
	k->soon = loop_timer_new(app->loop, look, k);
	images_on_added(app->images, added, k);
	return k;
}

void image_keeper_free(struct image_keeper *k)
{
	if (!k)
		return;
	loop_timer_free(k->look);
	loop_timer_free(k->soon);
	free(k);
}
