/*
 * imager/files_import_kinds.c - the documents of an OCI layout, of `docker save`, and what a plain
 * root filesystem has instead.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hex.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"
#include "codec/oci_image.h"
#include "imager/files_import.h"

#define ARENA_MAX     (32 << 20)
#define NAMES_MAX     64
#define MANIFESTS_MAX (1 << 20)

#if defined(__aarch64__)
#define ARCH "arm64"
#else
#define ARCH "amd64"
#endif

static const struct oci_platform ours = {.os = {"linux", 5}, .arch = {ARCH, sizeof(ARCH) - 1}};

/* A layer's place in the archive. */
struct source {
	const struct archive_file *file;
	const unsigned char *raw_sum; /* or NULL */
};

/* ---- one image ---- */

static void write_layers(struct import *i, const size_t *places, size_t n)
{
	json_write_key(i->done, "layers");
	json_write_array(i->done);
	for (size_t k = 0; k < n; k++) {
		const struct import_layer *l = &i->layers[places[k]];

		json_write_object(i->done);
		files_put_digest(i->done, "diff_id", l->diff_id);
		json_put_int(i->done, "number", (int64_t)l->number);
		json_put_int(i->done, "bytes", (int64_t)l->bytes);
		json_write_object_end(i->done);
	}
	json_write_array_end(i->done);
}

static int write_config(struct import *i, struct view text, struct err *e)
{
	osb_cleanup(json_freep) struct json *config = NULL;
	unsigned char sum[SHA256_BYTES];
	int r = json_parse(text, 0, &config, e);

	if (r < 0)
		return err_set(e, -EBADMSG, "the image's configuration is no JSON");
	json_write_key(i->done, "config");
	json_write_json(i->done, config);
	sha256_of(text, sum);
	files_put_digest(i->done, "config_digest", sum);
	return 0;
}

static int take_layers(struct import *i, const struct oci_config *config,
		       const struct source *sources, size_t *places, struct err *e)
{
	for (size_t k = 0; k < config->diff_ids_n; k++) {
		const struct archive_file *file = sources[k].file;
		unsigned char diff_id[SHA256_BYTES];
		int r;

		if (!file)
			return err_set(e, -EBADMSG,
				       "layer %zu: the archive lacks a layer that it names", k + 1);
		r = files_digest(view_of(config->diff_ids[k]), diff_id, e);
		if (r == 0)
			r = import_layer(i, file->at, file->len, 0, sources[k].raw_sum, diff_id,
					 &places[k], e);
		if (r < 0)
			return err_ctx(e, "layer %zu", k + 1);
	}
	return 0;
}

/* Layers first: the answer is written when they are there. */
static int take_image(struct import *i, struct view config_text, const struct source *sources,
		      size_t sources_n, const struct view *names, size_t names_n, struct arena *a,
		      struct err *e)
{
	size_t places[OCI_LAYERS_MAX];
	struct oci_config config;
	int r = oci_config_parse(config_text, a, &config, e);

	if (r == 0)
		r = oci_config_check(&config, sources_n, &ours, e);
	if (r == 0 && ++i->images_n > IMPORT_IMAGES_MAX)
		r = err_set(e, -EFBIG, "the archive has more than %d images", IMPORT_IMAGES_MAX);
	if (r == 0)
		r = take_layers(i, &config, sources, places, e);
	if (r < 0)
		return r;
	json_write_object(i->done);
	json_write_key(i->done, "names");
	json_write_array(i->done);
	for (size_t k = 0; k < names_n; k++)
		json_write_string(i->done, names[k]);
	json_write_array_end(i->done);
	r = write_config(i, config_text, e);
	write_layers(i, places, config.diff_ids_n);
	json_write_object_end(i->done);
	return r;
}

static size_t read_names(const struct json *list, struct view ret[NAMES_MAX])
{
	size_t n = 0;

	for (size_t k = 0; k < json_len(list) && n < NAMES_MAX; k++)
		if (json_str(json_at(list, k), &ret[n]))
			n++;
	return n;
}

/* ---- docker save ---- */

static int take_docker_image(struct import *i, const struct json *item, struct arena *a,
			     struct err *e)
{
	osb_cleanup(buf_done) struct buf config = BUF_INIT(0);
	struct source sources[OCI_LAYERS_MAX] = {0};
	const struct json *layers = json_get(item, "Layers");
	struct view names[NAMES_MAX], path;
	size_t n = json_len(layers);
	int r;

	if (!json_str(json_get(item, "Config"), &path) || n > OCI_LAYERS_MAX)
		return err_set(e, -EBADMSG, "manifest.json of the archive is not as Docker has it");
	r = import_text(i, archive_index_find(&i->index, path), OCI_CONFIG_MAX, &config, e);
	if (r < 0)
		return r;
	for (size_t k = 0; k < n; k++)
		if (json_str(json_at(layers, k), &path))
			sources[k].file = archive_index_find(&i->index, path);
	return take_image(i, buf_view(&config), sources, n, names,
			  read_names(json_get(item, "RepoTags"), names), a, e);
}

/* A list of objects that name a configuration; any file may be called so. */
static bool is_docker(const struct json *list)
{
	struct view ignored;

	return json_kind(list) == JSON_ARRAY && json_len(list) > 0 &&
	       json_str(json_get(json_at(list, 0), "Config"), &ignored) &&
	       json_get(json_at(list, 0), "Layers");
}

int import_docker(struct import *i, struct err *e)
{
	const struct archive_file *file = archive_index_find(&i->index, VIEW("manifest.json"));
	osb_cleanup(buf_done) struct buf text = BUF_INIT(0);
	osb_cleanup(arena_done) struct arena a;
	osb_cleanup(json_freep) struct json *list = NULL;
	struct err ignored = ERR_NONE;
	int r = 0;

	arena_init(&a, ARENA_MAX);
	if (!file || import_text(i, file, MANIFESTS_MAX, &text, &ignored) < 0 ||
	    json_parse(buf_view(&text), 0, &list, &ignored) < 0 || !is_docker(list))
		return 0;
	for (size_t k = 0; r == 0 && k < json_len(list); k++)
		r = take_docker_image(i, json_at(list, k), &a, e);
	return r < 0 ? r : 1;
}

/* ---- OCI layout ---- */

static const struct archive_file *find_blob(struct import *i, const char *digest)
{
	char path[sizeof("blobs/sha256/") + 2 * SHA256_BYTES];

	snprintf(path, sizeof(path), "blobs/sha256/%.64s", digest + 7);
	return archive_index_find(&i->index, view_of(path));
}

/* A document that is what its digest says. */
static int read_blob(struct import *i, const struct oci_descriptor *d, size_t max, struct buf *ret,
		     struct err *e)
{
	unsigned char want[SHA256_BYTES], sum[SHA256_BYTES];
	int r = import_text(i, find_blob(i, d->digest), max, ret, e);

	if (r == 0)
		r = files_digest(view_of(d->digest), want, e);
	if (r < 0)
		return r;
	sha256_of(buf_view(ret), sum);
	if (memcmp(sum, want, sizeof(sum)) != 0)
		return err_set(e, -EBADMSG,
			       "a document of the archive is not what its digest says");
	return 0;
}

static int take_manifest(struct import *i, const struct oci_document *m, const struct view *names,
			 size_t names_n, struct arena *a, struct err *e)
{
	osb_cleanup(buf_done) struct buf config = BUF_INIT(0);
	struct source sources[OCI_LAYERS_MAX] = {0};
	int r = read_blob(i, &m->config, OCI_CONFIG_MAX, &config, e);

	for (size_t k = 0; r == 0 && k < m->items_n && k < OCI_LAYERS_MAX; k++) {
		unsigned char *sum = arena_alloc(a, SHA256_BYTES);

		if (!sum)
			return err_set(e, -EFBIG, "the archive has too many layers");
		r = files_digest(view_of(m->items[k].digest), sum, e);
		sources[k] = (struct source){find_blob(i, m->items[k].digest), sum};
	}
	return r == 0 ? take_image(i, buf_view(&config), sources, m->items_n, names, names_n, a, e)
		      : r;
}

/* From a descriptor to the manifest behind it, through indexes. */
static int follow(struct import *i, const struct oci_descriptor *from, const struct view *names,
		  size_t names_n, struct arena *a, struct err *e)
{
	struct oci_descriptor d = *from;

	for (int depth = 0; depth < OCI_DEPTH_MAX; depth++) {
		osb_cleanup(buf_done) struct buf text = BUF_INIT(0);
		const struct oci_descriptor *next = NULL;
		struct oci_document document;
		int r = read_blob(i, &d, OCI_MANIFEST_MAX, &text, e);

		if (r == 0)
			r = oci_document_parse(buf_view(&text), d.media_type, a, &document, e);
		if (r == 0 && document.kind == OCI_MANIFEST)
			return take_manifest(i, &document, names, names_n, a, e);
		if (r == 0)
			r = oci_index_choose(&document, &ours, &next, e);
		if (r < 0)
			return r;
		if (!next)
			break;
		d = *next;
	}
	return err_set(e, -EBADMSG, "the archive's indexes lead nowhere");
}

static size_t annotated_name(const struct json *descriptor, struct view ret[1])
{
	const struct json *a = json_get(descriptor, "annotations");

	return json_str(json_get(a, "io.containerd.image.name"), ret) ||
	       json_str(json_get(a, "org.opencontainers.image.ref.name"), ret);
}

/* Of another platform, or what only accompanies images. */
static bool is_other(const struct oci_descriptor *d)
{
	return d->platform.arch.len > 0 &&
	       (!view_eq(d->platform.arch, ours.arch) || !view_eq(d->platform.os, ours.os));
}

int import_oci(struct import *i, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(0);
	osb_cleanup(arena_done) struct arena a;
	osb_cleanup(json_freep) struct json *index = NULL;
	struct oci_document document;
	int r;

	arena_init(&a, ARENA_MAX);
	if (!archive_index_find(&i->index, VIEW("oci-layout")))
		return 0;
	r = import_text(i, archive_index_find(&i->index, VIEW("index.json")), OCI_MANIFEST_MAX,
			&text, e);
	if (r == 0)
		r = json_parse(buf_view(&text), 0, &index, e) < 0 ? -EBADMSG : 0;
	if (r == 0)
		r = oci_document_parse(buf_view(&text), VIEW_NONE, &a, &document, e);
	if (r < 0)
		return err_set(e, -EBADMSG, "index.json of the archive is not as OCI has it");
	for (size_t k = 0; r == 0 && k < document.items_n; k++) {
		struct view name[1];
		size_t n = annotated_name(json_at(json_get(index, "manifests"), k), name);

		if (!is_other(&document.items[k]))
			r = follow(i, &document.items[k], name, n, &a, e);
	}
	if (r == 0 && i->images_n == 0)
		r = err_set(e, -EOPNOTSUPP, "the archive has no image for linux/" ARCH);
	return r < 0 ? r : 1;
}

/* ---- a root filesystem ---- */

int import_plain(struct import *i, struct err *e)
{
	osb_cleanup(buf_done) struct buf config = BUF_INIT(1024);
	char hex[2 * SHA256_BYTES + 1];
	size_t place;
	int r = import_layer(i, 0, i->len, LAYER_PLAIN, NULL, NULL, &place, e);

	if (r < 0)
		return r;
	hex_format(i->layers[place].diff_id, SHA256_BYTES, hex);
	if (buf_printf(&config,
		       "{\"architecture\":\"" ARCH "\",\"os\":\"linux\",\"config\":{},"
		       "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"sha256:%s\"]}}",
		       hex) < 0)
		return err_set(e, -E2BIG, "no room");
	json_write_object(i->done);
	json_write_key(i->done, "names");
	json_write_array(i->done);
	json_write_array_end(i->done);
	r = write_config(i, buf_view(&config), e);
	write_layers(i, &place, 1);
	json_write_object_end(i->done);
	return r;
}
