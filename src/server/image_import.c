/*
 * server/image_import.c - one job unpacks the archive; what it made becomes layers and images.
 */
#include "server/image_import.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/image_ref.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"
#include "server/app.h"
#include "server/config.h"
#include "server/failure.h"
#include "server/images.h"
#include "server/job_failure.h"
#include "server/jobs.h"
#include "server/layers.h"
#include "store/store.h"
#include "store/store_images.h"

#define REQUEST_MAX 4096
#define CONFIG_MAX  ((size_t)10 << 20)
#define NUMBERS	    8192 /* layers that one archive may have */
#define IMAGES_MAX  256

struct import {
	struct app *app;
	image_import_fn *fn;
	void *arg;
	char *key;
	uint64_t first;
	struct image *images[IMAGES_MAX];
	size_t images_n;
};

static void end(struct import *i, const struct failure *f)
{
	image_import_fn *fn = i->fn;

	layers_release(i->app->layers);
	fn(i->arg, f ? NULL : i->images, f ? 0 : i->images_n, f);
	free(i->key);
	free(i);
}

/* ---- what the job has made ---- */

/* The layer as it is here already, or as it was made just now. */
static int take_layer(struct import *i, const struct json *v, uint64_t *ret, struct err *e)
{
	char diff_id[IMAGE_REF_DIGEST_LEN + 1];
	struct store_layer made = {
		.diff_id = diff_id,
		.created_us = (int64_t)(clock_wall_ns() / 1000),
	};
	const struct layer *there;
	int64_t number, n;
	int r;

	if (!job_digest(v, "diff_id", diff_id) || !json_int(json_get(v, "number"), &number) ||
	    number < (int64_t)i->first || number >= (int64_t)(i->first + NUMBERS))
		return err_set(e, -EPROTO, "a layer of the archive has no number");
	there = layers_find(i->app->layers, view_of(diff_id));
	if (there) {
		*ret = there->number;
		return 0;
	}
	made.number = (uint64_t)number;
	made.bytes = json_int(json_get(v, "bytes"), &n) && n >= 0 ? (uint64_t)n : 0;
	made.files = json_int(json_get(v, "files"), &n) && n >= 0 ? (uint64_t)n : 0;
	r = layers_add(i->app->layers, &made, e);
	*ret = made.number;
	return r;
}

static int name_image(struct import *i, struct image *image, struct view name, struct err *e)
{
	char key[IMAGE_REF_TEXT_MAX + 1];
	struct err bad = ERR_NONE;
	struct image_ref ref;

	/* A name that an archive gives and that is none does not count. */
	if (image_ref_parse(name, &ref, &bad) < 0)
		return 0;
	images_key(&ref, key, sizeof(key));
	return images_name(i->app->images, image, key, e);
}

static int take_names(struct import *i, const struct json *v, struct image *image, struct err *e)
{
	const struct json *names = json_get(v, "names");
	struct view name;
	int r = i->key ? images_name(i->app->images, image, i->key, e) : 0;

	for (size_t n = 0; r == 0 && !i->key && n < json_len(names); n++)
		if (json_str(json_at(names, n), &name))
			r = name_image(i, image, name, e);
	return r;
}

static int take_image(struct import *i, const struct json *v, struct err *e)
{
	osb_cleanup(buf_done) struct buf config = BUF_INIT(CONFIG_MAX);
	osb_cleanup(mem_freep) uint64_t *numbers = NULL;
	const struct json *layers = json_get(v, "layers");
	char id[IMAGE_REF_DIGEST_LEN + 1];
	struct images_record record = {.id = id, .layers_n = json_len(layers)};
	struct json_writer w;
	struct image *image;
	int r = 0;

	if (!job_digest(v, "config_digest", id) || json_len(layers) == 0 ||
	    json_len(layers) > IMAGES_LAYERS_MAX)
		return err_set(e, -EBADMSG, "an image of the archive has no layers, or too many");
	numbers = mem_new_array(uint64_t, json_len(layers));
	for (size_t n = 0; r == 0 && n < json_len(layers); n++)
		r = take_layer(i, json_at(layers, n), &numbers[n], e);
	if (r < 0)
		return r;
	json_writer_init(&w, &config);
	json_write_json(&w, json_get(v, "config"));
	if (json_writer_end(&w) < 0)
		return err_set(e, -E2BIG, "an image's configuration is too large");
	record.config = buf_str(&config);
	record.layers = numbers;
	r = images_add(i->app->images, &record, &image, e);
	if (r == 0)
		r = take_names(i, v, image, e);
	if (r == 0)
		i->images[i->images_n++] = image;
	return r;
}

/* What was here already and was unpacked again has no record: it goes. */
static void discard_doubles(struct import *i, const struct json *images)
{
	osb_cleanup(mem_freep) uint64_t *doubles = mem_new_array(uint64_t, NUMBERS);
	int64_t number;
	size_t n = 0;

	for (size_t m = 0; m < json_len(images); m++) {
		const struct json *layers = json_get(json_at(images, m), "layers");

		for (size_t k = 0; n < NUMBERS && k < json_len(layers); k++)
			if (json_int(json_get(json_at(layers, k), "number"), &number) &&
			    number >= (int64_t)i->first && number < (int64_t)(i->first + NUMBERS) &&
			    !layers_get(i->app->layers, (uint64_t)number))
				doubles[n++] = (uint64_t)number;
	}
	layers_discard(i->app->layers, doubles, n);
}

static void imported(void *arg, const struct json *result)
{
	const struct json *images = json_get(result, "images");
	struct import *i = arg;
	struct failure f = FAILURE_NONE;
	struct err e = ERR_NONE;
	int r = 0;

	if (json_len(images) == 0 || json_len(images) > IMAGES_MAX)
		r = err_set(&e, -EBADMSG, "the archive holds no image, or too many");
	for (size_t n = 0; r == 0 && n < json_len(images); n++)
		r = take_image(i, json_at(images, n), &e);
	discard_doubles(i, images);
	if (r < 0)
		failure_set(&f, 400, "IMAGE::IMPORT_FAILED", "%s", e.msg);
	end(i, r < 0 ? &f : NULL);
}

/* A job that fails takes what it made with it, one that is killed does not: how far it got is not
 * known. */
static void discard_all(struct import *i)
{
	osb_cleanup(mem_freep) uint64_t *numbers = mem_new_array(uint64_t, NUMBERS);

	for (size_t n = 0; n < NUMBERS; n++)
		numbers[n] = i->first + n;
	layers_discard(i->app->layers, numbers, NUMBERS);
}

static void not_imported(void *arg, const char *code, const char *message)
{
	struct import *i = arg;
	struct failure f = FAILURE_NONE;

	if (strcmp(code, JOB_CODE_LOST) == 0)
		discard_all(i);
	job_failure(&f, code, "IMAGE::IMPORT_FAILED", "%s", message);
	end(i, &f);
}

static const struct job_events events = {.done = imported, .failed = not_imported};

void image_import(struct app *app, const char *upload, const char *key, image_import_fn *fn,
		  void *arg)
{
	osb_cleanup(buf_done) struct buf request = BUF_INIT(REQUEST_MAX);
	struct import *i = mem_new(struct import);
	struct failure f = FAILURE_NONE;
	struct err e = ERR_NONE;
	struct json_writer w;

	i->app = app;
	i->fn = fn;
	i->arg = arg;
	i->key = key ? mem_strdup(key) : NULL;
	layers_hold(app->layers);
	if (store_take_numbers(app->store, "layer", NUMBERS, &i->first, &e) < 0) {
		failure_set(&f, 500, "IMAGE::IMPORT_FAILED", "%s", e.msg);
		end(i, &f);
		return;
	}
	json_writer_init(&w, &request);
	json_write_object(&w);
	json_put_cstr(&w, "op", "import");
	json_put_cstr(&w, "upload", upload);
	json_put_int(&w, "first_number", (int64_t)i->first);
	if (app->config->images_max_image_bytes)
		json_put_int(&w, "max_bytes", (int64_t)app->config->images_max_image_bytes);
	json_write_object_end(&w);
	/* A few short words: they fit. */
	if (json_writer_end(&w) == 0)
		(void)job_start(app->jobs, JOB_HEAVY, buf_view(&request), &events, i);
}
