/*
 * server/images.c - images by id and by name.
 *
 * Everything is written through, but for the time of the last use: that is written once in a while,
 * since every create changes it.
 */
#include "server/images.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/glob.h"
#include "codec/image_ref.h"
#include "net/loop.h"
#include "server/config.h"
#include "server/failure.h"
#include "server/layers.h"
#include "store/store.h"
#include "store/store_images.h"

#define KEPT_MAX       16384
#define TOUCH_MS       30000
#define SHORT_ID_MIN   12
#define DIGEST_PREFIX  "sha256:"
#define DIGEST_HEX_LEN 64

struct images {
	struct store *store;
	struct layers *layers;
	struct list all; /* newest first */
	struct map *by_id, *by_name;
	struct loop_timer *touch;
	void (*added)(void *arg);
	void *added_arg;
};

static int64_t now_us(void)
{
	return (int64_t)(clock_wall_ns() / 1000);
}

/* ---- names ---- */

const char *images_alias(const struct config *config, const char *uri)
{
	for (size_t i = 0; i < config->aliases_n; i++)
		if (glob_match(view_of(config->aliases[i].pattern), view_of(uri)))
			return config->aliases[i].image;
	return uri;
}

void images_key(const struct image_ref *ref, char *ret, size_t size)
{
	struct image_ref plain = *ref;
	char text[IMAGE_REF_TEXT_MAX + 1];

	if (plain.digest[0])
		plain.tag[0] = '\0';
	image_ref_format(&plain, text);
	snprintf(ret, size, "%s", text);
}

/* ---- finding ---- */

struct image *images_by_id(struct images *i, struct view id)
{
	return map_get(i->by_id, id);
}

struct image *images_by_key(struct images *i, const char *key)
{
	return map_get(i->by_name, view_of(key));
}

static bool is_hex(struct view text)
{
	for (size_t n = 0; n < text.len; n++)
		if (!view_has(VIEW("0123456789abcdef"), text.p[n]))
			return false;
	return true;
}

/* The one image whose id begins so; NULL if there are several. */
static struct image *by_short_id(struct images *i, struct view text)
{
	struct image *found = NULL;

	if (view_starts(text, VIEW(DIGEST_PREFIX)))
		text = view_skip(text, sizeof(DIGEST_PREFIX) - 1);
	if (text.len < SHORT_ID_MIN || text.len > DIGEST_HEX_LEN || !is_hex(text))
		return NULL;
	for (struct image *m = NULL; (m = images_next(i, m));) {
		if (!view_starts(view_skip(view_of(m->id), sizeof(DIGEST_PREFIX) - 1), text))
			continue;
		if (found)
			return NULL;
		found = m;
	}
	return found;
}

struct image *images_find(struct images *i, struct view text)
{
	char key[IMAGE_REF_TEXT_MAX + 1];
	struct image *found = by_short_id(i, text);
	struct err e = ERR_NONE;
	struct image_ref ref;

	if (found || image_ref_parse(text, &ref, &e) < 0)
		return found;
	images_key(&ref, key, sizeof(key));
	return images_by_key(i, key);
}

struct image *images_next(struct images *i, struct image *after)
{
	struct list *it = after ? after->link.next : i->all.next;

	return it == &i->all ? NULL : list_entry(it, struct image, link);
}

uint64_t images_bytes(struct images *i, const struct image *image)
{
	uint64_t sum = 0;

	for (size_t n = 0; n < image->root.layers_n; n++) {
		const struct layer *x = layers_get(i->layers, image->root.layers[n]);

		sum += x ? x->bytes : 0;
	}
	return sum;
}

struct layers *images_layers(struct images *i)
{
	return i->layers;
}

/* ---- the table ---- */

static void image_free(struct image *m)
{
	list_remove(&m->link);
	free(m->id);
	free(m->digest);
	free(m->config);
	strv_done(&m->names);
	sandbox_root_done(&m->root);
	free(m);
}

/* A layer that comes twice hides, from above, all that it held below. */
static void push_layer(struct sandbox_root *root, uint64_t number)
{
	size_t kept = 0;

	for (size_t i = 0; i < root->layers_n; i++)
		if (root->layers[i] != number)
			root->layers[kept++] = root->layers[i];
	root->layers_n = kept;
	root->layers = mem_resize(root->layers, kept + 1, sizeof(*root->layers));
	root->layers[root->layers_n++] = number;
}

static int image_make(const char *id, const char *digest, const char *config, struct image **ret,
		      struct err *e)
{
	struct image *m = mem_new(struct image);
	int r;

	list_init(&m->link);
	m->id = mem_strdup(id);
	m->digest = digest ? mem_strdup(digest) : NULL;
	m->config = mem_strdup(config);
	r = image_config_read(view_of(config), &m->root, &m->facts, e);
	if (r < 0) {
		image_free(m);
		return r;
	}
	m->root.image = mem_strdup(id);
	*ret = m;
	return 0;
}

static void insert(struct images *i, struct image *m)
{
	list_push_front(&i->all, &m->link);
	map_put(i->by_id, view_of(m->id), m);
}

static void drop_name(struct image *m, const char *name)
{
	for (size_t n = 0; n < m->names.len; n++) {
		if (strcmp(m->names.v[n], name) != 0)
			continue;
		free(m->names.v[n]);
		memmove(&m->names.v[n], &m->names.v[n + 1],
			(m->names.len - n) * sizeof(*m->names.v));
		m->names.len--;
		return;
	}
}

/* Its id is a digest of what names its layers: others under the same id are none of its own. */
static bool same_layers(const struct image *a, const struct image *b)
{
	return a->root.layers_n == b->root.layers_n &&
	       memcmp(a->root.layers, b->root.layers,
		      a->root.layers_n * sizeof(a->root.layers[0])) == 0;
}

int images_add(struct images *i, const struct images_record *record, struct image **ret,
	       struct err *e)
{
	struct image *there = images_by_id(i, view_of(record->id)), *m;
	struct store_image stored;
	int r;

	r = image_make(record->id, record->digest, record->config, &m, e);
	if (r < 0)
		return r;
	for (size_t n = 0; n < record->layers_n; n++)
		push_layer(&m->root, record->layers[n]);
	if (there) {
		r = same_layers(there, m)
			    ? 0
			    : err_set(e, -EBADMSG,
				      "an image with this id and other layers is here");
		image_free(m);
		if (r == 0)
			*ret = there;
		return r;
	}
	if (map_len(i->by_id) >= KEPT_MAX) {
		image_free(m);
		return err_set(e, -ENOSPC,
			       "there are %d images, more are not allowed: prune them first",
			       KEPT_MAX);
	}
	m->created_us = m->used_us = now_us();
	stored = (struct store_image){
		.id = m->id,
		.digest = m->digest,
		.config = m->config,
		.created_us = m->created_us,
		.used_us = m->used_us,
		.layers = m->root.layers,
		.layers_n = m->root.layers_n,
	};
	r = store_begin(i->store, e);
	if (r == 0)
		r = store_end(i->store, store_put_image(i->store, &stored, e), e);
	if (r < 0) {
		image_free(m);
		return r;
	}
	layers_use(i->layers, m->root.layers, m->root.layers_n);
	insert(i, m);
	if (i->added)
		i->added(i->added_arg);
	*ret = m;
	return 0;
}

void images_on_added(struct images *i, void (*fn)(void *arg), void *arg)
{
	i->added = fn;
	i->added_arg = arg;
}

int images_name(struct images *i, struct image *image, const char *key, struct err *e)
{
	struct image *before = images_by_key(i, key);
	int r;

	if (before == image)
		return 0;
	if (image->names.len >= IMAGES_NAMES_MAX)
		return err_set(e, -ENOSPC,
			       "the image has %d names, more are not allowed: remove some first",
			       IMAGES_NAMES_MAX);
	r = store_put_image_name(i->store, key, image->id, e);
	if (r < 0)
		return r;
	if (before)
		drop_name(before, key);
	strv_add(&image->names, key);
	map_put(i->by_name, view_of(key), image);
	return 0;
}

int images_unname(struct images *i, const char *key, struct err *e)
{
	struct image *m = images_by_key(i, key);
	int r;

	if (!m)
		return 0;
	r = store_delete_image_name(i->store, key, e);
	if (r < 0)
		return r;
	map_remove(i->by_name, view_of(key));
	drop_name(m, key);
	return 0;
}

int images_remove(struct images *i, struct image *image, struct err *e)
{
	int r = store_delete_image(i->store, image->id, e);

	if (r < 0)
		return r;
	for (size_t n = 0; n < image->names.len; n++)
		map_remove(i->by_name, view_of(image->names.v[n]));
	map_remove(i->by_id, view_of(image->id));
	layers_leave(i->layers, image->root.layers, image->root.layers_n);
	image_free(image);
	return 0;
}

/* ---- users ---- */

static void write_uses(void *arg)
{
	struct images *i = arg;
	struct err e = ERR_NONE;

	for (struct image *m = NULL; (m = images_next(i, m));) {
		if (m->touched && store_touch_image(i->store, m->id, m->used_us, &e) < 0)
			log_line(LOG_ERROR, "cannot write an image's last use",
				 LOG_S("err", e.msg));
		m->touched = false;
	}
}

static struct image *image_of(struct images *i, const struct sandbox_root *root)
{
	return root->image ? images_by_id(i, view_of(root->image)) : NULL;
}

void images_use(struct images *i, const struct sandbox_root *root)
{
	struct image *m = root->layers_n ? image_of(i, root) : NULL;

	layers_use(i->layers, root->layers, root->layers_n);
	if (m)
		m->users++;
}

void images_leave(struct images *i, const struct sandbox_root *root)
{
	struct image *m = root->layers_n ? image_of(i, root) : NULL;

	layers_leave(i->layers, root->layers, root->layers_n);
	/* One that was removed by force and came back knows nothing of its former users. */
	if (m && m->users > 0)
		m->users--;
}

int images_apply(struct images *i, struct image *image, struct sandbox_spec *spec,
		 struct failure *f)
{
	if (spec->entrypoint.len == 0 && image->root.start.len == 0)
		return failure_set(f, 400, "DOCKER::INVALID_ENTRYPOINT",
				   "neither the request nor the image '%.120s' names an entrypoint",
				   spec->image_uri);
	sandbox_root_done(&spec->root);
	sandbox_root_copy(&spec->root, &image->root);
	if (spec->entrypoint.len == 0)
		strv_copy(&spec->entrypoint, strv_args(&image->root.start));
	image->used_us = now_us();
	image->touched = true;
	if (!loop_timer_active(i->touch))
		loop_timer_start(i->touch, TOUCH_MS);
	return 0;
}

/* ---- beginning and end ---- */

static int load_image(void *arg, const struct store_image *record)
{
	struct images *i = arg;
	struct err e = ERR_NONE;
	struct image *m;

	if (image_make(record->id, record->digest, record->config, &m, &e) < 0) {
		log_line(LOG_ERROR, "ignoring a malformed image", LOG_S("image", record->id),
			 LOG_S("err", e.msg));
		return 0;
	}
	m->created_us = record->created_us;
	m->used_us = record->used_us;
	insert(i, m);
	return 0;
}

static int load_layer(void *arg, const char *image, uint64_t number)
{
	struct images *i = arg;
	struct image *m = images_by_id(i, view_of(image));

	if (m) {
		push_layer(&m->root, number);
		layers_use(i->layers, &number, 1);
	}
	return 0;
}

static int load_name(void *arg, const char *name, const char *image)
{
	struct images *i = arg;
	struct image *m = images_by_id(i, view_of(image));

	if (m) {
		strv_add(&m->names, name);
		map_put(i->by_name, view_of(name), m);
	}
	return 0;
}

int images_new(struct loop *l, struct store *store, struct layers *layers, struct images **ret,
	       struct err *e)
{
	struct images *i = mem_new(struct images);
	int r;

	i->store = store;
	i->layers = layers;
	list_init(&i->all);
	i->by_id = map_new();
	i->by_name = map_new();
	i->touch = loop_timer_new(l, write_uses, i);
	r = store_each_image(store, load_image, i, e);
	if (r == 0)
		r = store_each_image_layer(store, load_layer, i, e);
	if (r == 0)
		r = store_each_image_name(store, load_name, i, e);
	if (r < 0) {
		images_free(i);
		return r;
	}
	*ret = i;
	return 0;
}

void images_free(struct images *i)
{
	if (!i)
		return;
	write_uses(i);
	list_each_safe (it, next, &i->all)
		image_free(list_entry(it, struct image, link));
	map_free(i->by_id);
	map_free(i->by_name);
	loop_timer_free(i->touch);
	free(i);
}
