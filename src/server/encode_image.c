/*
 * server/encode_image.c - what is unknown is left out, never null.
 */
#include "server/encode_image.h"

#include <string.h>

#include "base/strv.h"
#include "codec/json_writer.h"
#include "server/app.h"
#include "server/encode.h"
#include "server/images.h"
#include "server/layers.h"
#include "server/platform.h"
#include "server/pulls.h"
#include "server/sandboxes.h"

/* Those with a tag, or those with a digest. */
static void put_names(struct json_writer *w, const char *key, const struct strv *names,
		      bool digests)
{
	json_write_key(w, key);
	json_write_array(w);
	for (size_t i = 0; i < names->len; i++)
		if ((strchr(names->v[i], '@') != NULL) == digests)
			json_write_cstr(w, names->v[i]);
	json_write_array_end(w);
}

static void put_strings(struct json_writer *w, const char *key, const struct strv *s)
{
	json_write_key(w, key);
	json_write_array(w);
	for (size_t i = 0; i < s->len; i++)
		json_write_cstr(w, s->v[i]);
	json_write_array_end(w);
}

static void put_platform(struct json_writer *w, const char *os, const char *arch)
{
	json_write_key(w, "platform");
	json_write_object(w);
	json_put_cstr(w, "os", os);
	json_put_cstr(w, "arch", arch);
	json_write_object_end(w);
}

static void put_layers(struct json_writer *w, struct app *app, const struct image *m)
{
	json_write_key(w, "layers");
	json_write_array(w);
	for (size_t i = 0; i < m->root.layers_n; i++) {
		const struct layer *l = layers_get(app->layers, m->root.layers[i]);

		if (!l)
			continue;
		json_write_object(w);
		if (l->diff_id)
			json_put_cstr(w, "diffId", l->diff_id);
		json_put_int(w, "sizeBytes", (int64_t)l->bytes);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void put_config(struct json_writer *w, const struct sandbox_root *r)
{
	json_write_key(w, "config");
	json_write_object(w);
	json_write_key(w, "env");
	json_write_object(w);
	for (size_t i = 0; i < r->env.n; i++)
		json_put_cstr(w, r->env.v[i].name, r->env.v[i].value);
	json_write_object_end(w);
	put_strings(w, "entrypoint", &r->start);
	if (r->user)
		json_put_cstr(w, "user", r->user);
	if (r->cwd)
		json_put_cstr(w, "workingDir", r->cwd);
	json_write_object_end(w);
}

void encode_image(struct json_writer *w, struct app *app, const struct image *m)
{
	json_write_object(w);
	json_put_cstr(w, "id", m->id);
	put_names(w, "names", &m->names, false);
	put_names(w, "digests", &m->names, true);
	put_platform(w, m->facts.os, m->facts.arch);
	json_put_int(w, "sizeBytes", (int64_t)images_bytes(app->images, m));
	put_layers(w, app, m);
	put_config(w, &m->root);
	json_put_int(w, "users", m->users);
	encode_time(w, "createdAt", m->created_us);
	encode_time(w, "lastUsedAt", m->used_us);
	json_write_object_end(w);
}

/* Made of the host's own files: it takes no space, and was always there. */
void encode_host_image(struct json_writer *w, struct app *app)
{
	static const struct strv none;
	static const struct sandbox_root plain;
	struct sandbox *b = NULL;
	int64_t users = 0, since_us = 0;

	while ((b = sandboxes_next(app->sandboxes, b))) {
		if (!b->spec.root.host_base)
			continue;
		users++;
		since_us = MAX(since_us, b->created_us);
	}
	json_write_object(w);
	json_put_cstr(w, "id", IMAGES_HOST);
	json_write_key(w, "names");
	json_write_array(w);
	json_write_cstr(w, IMAGES_HOST);
	json_write_array_end(w);
	put_names(w, "digests", &none, true);
	put_platform(w, "linux", platform_arch());
	json_put_int(w, "sizeBytes", 0);
	json_write_key(w, "layers");
	json_write_array(w);
	json_write_array_end(w);
	put_config(w, &plain);
	json_put_int(w, "users", users);
	encode_time(w, "createdAt", app->started_us);
	if (since_us)
		encode_time(w, "lastUsedAt", since_us);
	json_write_object_end(w);
}

void encode_pull(struct json_writer *w, const struct pull *p)
{
	static const char *const states[PULL_STATES_] = {
		[PULL_QUEUED] = "Queued",
		[PULL_RUNNING] = "Pulling",
		[PULL_READY] = "Ready",
		[PULL_FAILED] = "Failed",
	};

	json_write_object(w);
	json_put_cstr(w, "id", p->id);
	json_put_cstr(w, "reference", p->key);
	json_put_cstr(w, "state", states[p->state]);
	if (p->state == PULL_FAILED) {
		json_put_cstr(w, "code", p->failure.code);
		json_put_cstr(w, "message", p->failure.message);
	}
	if (p->image)
		json_put_cstr(w, "imageId", p->image);
	json_write_key(w, "progress");
	json_write_object(w);
	json_put_int(w, "bytes", (int64_t)p->bytes);
	json_put_int(w, "total", (int64_t)p->total);
	json_put_int(w, "layers", p->layers);
	json_put_int(w, "layersDone", p->layers_done);
	json_write_object_end(w);
	encode_time(w, "startedAt", p->started_us);
	if (p->ended_us)
		encode_time(w, "endedAt", p->ended_us);
	json_write_object_end(w);
}
