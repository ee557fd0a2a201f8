/*
 * server/pull_run.c - one pull: the registry's manifest, blobs that arrive, layers that are made of
 * them, and the image at the end.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/image_ref.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"
#include "server/images.h"
#include "server/jobs.h"
#include "server/layers.h"
#include "server/platform.h"
#include "server/pulls_int.h"
#include "server/registries.h"
#include "store/store_images.h"

#define HAVE_MAX   16384
#define ATTEMPTS   3 /* for a program that is lost without a word */
#define CONFIG_MAX ((size_t)10 << 20)

struct pull_layer {
	struct pull *pull;
	struct unpack_wait wait;
	char digest[IMAGE_REF_DIGEST_LEN + 1], diff_id[IMAGE_REF_DIGEST_LEN + 1];
	char *media_type;
	bool asked;	 /* it is being made, or was */
	uint64_t number; /* 0 until it is there */
};

struct pull_manifest {
	char digest[IMAGE_REF_DIGEST_LEN + 1], config_digest[IMAGE_REF_DIGEST_LEN + 1];
	char *config; /* JSON text */
	struct pull_layer *layers;
	size_t layers_n;
};

static void fail(struct pull *p, const char *why)
{
	failure_set(&p->failure, 500, "DOCKER::SANDBOX_IMAGE_PULL_FAILED",
		    "image '%.100s' could not be pulled: %.130s", p->key, why);
	pulls_ended(p, NULL);
}

/* ---- the manifest ---- */

static void manifest_free(struct pull_manifest *m)
{
	for (size_t i = 0; i < m->layers_n; i++) {
		unpacks_leave(&m->layers[i].wait);
		free(m->layers[i].media_type);
	}
	free(m->layers);
	free(m->config);
	free(m);
}

static bool get_layer(const struct json *v, struct pull_layer *ret)
{
	struct view media_type;

	if (!job_digest(v, "digest", ret->digest) || !job_digest(v, "diff_id", ret->diff_id) ||
	    !json_str(json_get(v, "media_type"), &media_type) || view_has(media_type, '\0'))
		return false;
	ret->media_type = mem_strndup(media_type.p, media_type.len);
	return true;
}

static char *get_config(const struct json *v)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(CONFIG_MAX);
	struct json_writer w;

	if (!v || json_kind(v) != JSON_OBJECT)
		return NULL;
	json_writer_init(&w, &out);
	json_write_json(&w, v);
	return json_writer_end(&w) < 0 ? NULL : buf_take_str(&out);
}

/* NULL if it is not what a manifest must be. */
static struct pull_manifest *read_manifest(struct pull *p, const struct json *v)
{
	const struct json *layers = json_get(v, "layers");
	struct pull_manifest *m = mem_new(struct pull_manifest);
	bool good = job_digest(v, "digest", m->digest) &&
		    job_digest(v, "config_digest", m->config_digest) && json_len(layers) > 0 &&
		    json_len(layers) <= IMAGES_LAYERS_MAX &&
		    (m->config = get_config(json_get(v, "config"))) != NULL;

	if (good)
		m->layers = mem_new_array(struct pull_layer, json_len(layers));
	for (size_t i = 0; good && i < json_len(layers); i++) {
		m->layers[i].pull = p;
		good = get_layer(json_at(layers, i), &m->layers[i]);
		m->layers_n += good;
	}
	if (good)
		return m;
	manifest_free(m);
	return NULL;
}

/* ---- layers ---- */

/* The image under its tag, and under its digest: "repository@sha256:...". */
static int give_names(struct pull *p, struct image *image, struct err *e)
{
	char key[IMAGE_REF_TEXT_MAX + 1];
	struct image_ref ref;
	int r = images_name(p->all->images, image, p->key, e);

	if (r == 0)
		r = image_ref_parse(view_of(p->key), &ref, e);
	if (r < 0)
		return r;
	memcpy(ref.digest, p->manifest->digest, sizeof(ref.digest));
	images_key(&ref, key, sizeof(key));
	return images_name(p->all->images, image, key, e);
}

static void complete(struct pull *p)
{
	struct pull_manifest *m = p->manifest;
	osb_cleanup(mem_freep) uint64_t *numbers = mem_new_array(uint64_t, m->layers_n);
	struct images_record record = {
		.id = m->config_digest,
		.digest = m->digest,
		.config = m->config,
		.layers = numbers,
		.layers_n = m->layers_n,
	};
	struct image *image;
	struct err e = ERR_NONE;

	for (size_t i = 0; i < m->layers_n; i++)
		numbers[i] = m->layers[i].number;
	if (images_add(p->all->images, &record, &image, &e) < 0 || give_names(p, image, &e) < 0)
		fail(p, e.msg);
	else
		pulls_ended(p, image);
}

static void tell_progress(struct pull *p)
{
	list_each_safe (it, next, &p->waiting) {
		struct pull_wait *w = list_entry(it, struct pull_wait, link);

		if (w->progress)
			w->progress(w->arg, p);
	}
}

static void layer_made(void *arg, uint64_t number, const char *code, const char *message)
{
	struct pull_layer *layer = arg;
	struct pull *p = layer->pull;

	if (code) {
		fail(p, message);
		return;
	}
	layer->number = number;
	p->layers_done++;
	tell_progress(p);
	if (p->fetched && p->layers_done == p->layers)
		complete(p);
}

/* False when the pull is over. */
static bool make_layer(struct pull *p, struct pull_layer *layer)
{
	struct unpack_blob blob = {
		.digest = view_of(layer->digest),
		.media_type = view_of(layer->media_type),
		.diff_id = view_of(layer->diff_id),
	};

	if (layer->asked)
		return true;
	layer->asked = true;
	layer->wait.fn = layer_made;
	layer->wait.arg = layer;
	unpacks_wait(p->all->unpacks, &blob, &layer->wait);
	return p->state == PULL_RUNNING;
}

/* ---- the job ---- */

static void take_manifest(struct pull *p, const struct json *v)
{
	struct layers *layers = images_layers(p->all->images);

	if (p->manifest)
		return;
	p->manifest = read_manifest(p, v);
	if (!p->manifest) {
		fail(p, "its manifest is not one that can be used here");
		return;
	}
	p->layers = (unsigned)p->manifest->layers_n;
	for (size_t i = 0; i < p->manifest->layers_n; i++)
		if (layers_find(layers, view_of(p->manifest->layers[i].diff_id)) &&
		    !make_layer(p, &p->manifest->layers[i]))
			return;
}

static void take_progress(struct pull *p, const struct json *v)
{
	struct view blob;
	int64_t n;

	if (json_int(json_get(v, "bytes"), &n) && n >= 0)
		p->bytes = (uint64_t)n;
	if (json_int(json_get(v, "total"), &n) && n >= 0)
		p->total = (uint64_t)n;
	if (p->manifest && json_str(json_get(v, "blob"), &blob))
		for (size_t i = 0; i < p->manifest->layers_n; i++)
			if (view_is(blob, p->manifest->layers[i].digest) &&
			    !make_layer(p, &p->manifest->layers[i]))
				return;
	tell_progress(p);
}

static void fetch_news(void *arg, struct view name, const struct json *value)
{
	struct pull *p = arg;

	if (view_is(name, "manifest"))
		take_manifest(p, value);
	else if (view_is(name, "progress"))
		take_progress(p, value);
}

static void fetch_done(void *arg, const struct json *result)
{
	struct pull *p = arg;

	(void)result;
	p->job = NULL;
	if (!p->manifest) {
		fail(p, "the registry's answer had no manifest");
		return;
	}
	for (size_t i = 0; i < p->manifest->layers_n; i++)
		if (!make_layer(p, &p->manifest->layers[i]))
			return;
	p->fetched = true;
	if (p->layers_done == p->layers)
		complete(p);
}

static void begin_fetch(struct pull *p);

static void fetch_failed(void *arg, const char *code, const char *message)
{
	struct pull *p = arg;

	p->job = NULL;
	if (strcmp(code, JOB_CODE_LOST) == 0 && p->attempts < ATTEMPTS)
		begin_fetch(p);
	else
		fail(p, message);
}

static const struct job_events fetch_events = {
	.news = fetch_news,
	.done = fetch_done,
	.failed = fetch_failed,
};

static void put_have(struct json_writer *w, struct pull *p)
{
	const struct layers *layers = images_layers(p->all->images);
	const struct layer *layer;
	size_t pos = 0;

	json_write_key(w, "have");
	json_write_array(w);
	/* Beyond so many, blobs may be fetched that are not needed. */
	for (size_t n = 0; n < HAVE_MAX && (layer = layers_next(layers, &pos));) {
		if (!layer->diff_id)
			continue;
		json_write_cstr(w, layer->diff_id);
		n++;
	}
	json_write_array_end(w);
}

static void begin_fetch(struct pull *p)
{
	osb_cleanup(buf_done) struct buf request = BUF_INIT(JOB_REQUEST_MAX);
	struct json_writer w;

	p->attempts++;
	pull_stop(p);
	p->layers_done = 0;
	json_writer_init(&w, &request);
	json_write_object(&w);
	json_put_cstr(&w, "op", "pull");
	json_put_cstr(&w, "reference", p->key);
	json_write_key(&w, "platform");
	json_write_object(&w);
	json_put_cstr(&w, "os", "linux");
	json_put_cstr(&w, "arch", platform_arch());
	json_write_object_end(&w);
	registries_put(&w, p->all->config, p->auth);
	if (p->all->config->images_max_image_bytes) {
		json_write_key(&w, "limits");
		json_write_object(&w);
		json_put_int(&w, "total_bytes", (int64_t)p->all->config->images_max_image_bytes);
		json_write_object_end(&w);
	}
	put_have(&w, p);
	json_write_object_end(&w);
	if (json_writer_end(&w) < 0) {
		fail(p, "there are too many layers here to tell the registry client of");
		return;
	}
	p->job = job_start(p->all->jobs, JOB_FETCH, buf_view(&request), &fetch_events, p);
	explicit_bzero(request.mem, request.cap);
}

void pull_start(struct pull *p)
{
	struct store_pull record = {
		.reference = p->key,
		.auth = p->auth,
		.started_us = p->started_us,
	};
	struct err e = ERR_NONE;

	p->state = PULL_RUNNING;
	layers_hold(images_layers(p->all->images));
	if (store_put_pull(p->all->store, &record, &e) < 0)
		log_line(LOG_ERROR, "cannot record a pull", LOG_S("image", p->key),
			 LOG_S("err", e.msg));
	begin_fetch(p);
}

void pull_stop(struct pull *p)
{
	job_cancel(take_ptr(p->job));
	if (p->manifest)
		manifest_free(take_ptr(p->manifest));
}
