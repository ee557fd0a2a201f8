/*
 * codec/oci_image.c - manifests and indexes: what a document is, and what it names.
 */
#include "codec/oci_image.h"

#include <errno.h>
#include <inttypes.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/json.h"

#define TYPE_MAX 255

const char oci_accept_manifests[] = "application/vnd.oci.image.index.v1+json, "
				    "application/vnd.docker.distribution.manifest.list.v2+json, "
				    "application/vnd.oci.image.manifest.v1+json, "
				    "application/vnd.docker.distribution.manifest.v2+json";

static const struct {
	const char *type;
	enum oci_media media;
} types[] = {
	{"application/vnd.oci.image.manifest.v1+json", OCI_MANIFEST},
	{"application/vnd.docker.distribution.manifest.v2+json", OCI_MANIFEST},
	{"application/vnd.oci.image.index.v1+json", OCI_INDEX},
	{"application/vnd.docker.distribution.manifest.list.v2+json", OCI_INDEX},
	{"application/vnd.docker.distribution.manifest.v1+json", OCI_SCHEMA1},
	{"application/vnd.docker.distribution.manifest.v1+prettyjws", OCI_SCHEMA1},
	{"application/vnd.oci.image.config.v1+json", OCI_CONFIG},
	{"application/vnd.docker.container.image.v1+json", OCI_CONFIG},
	{"application/vnd.oci.empty.v1+json", OCI_EMPTY},
	{"application/vnd.oci.image.layer.v1.tar", OCI_LAYER_TAR},
	{"application/vnd.oci.image.layer.v1.tar+gzip", OCI_LAYER_GZIP},
	{"application/vnd.oci.image.layer.v1.tar+zstd", OCI_LAYER_ZSTD},
	{"application/vnd.docker.image.rootfs.diff.tar", OCI_LAYER_TAR},
	{"application/vnd.docker.image.rootfs.diff.tar.gzip", OCI_LAYER_GZIP},
	{"application/vnd.docker.image.rootfs.diff.tar.zstd", OCI_LAYER_ZSTD},
	{"application/vnd.docker.image.rootfs.foreign.diff.tar", OCI_LAYER_FOREIGN},
	{"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", OCI_LAYER_FOREIGN},
	{"application/vnd.oci.image.layer.nondistributable.v1.tar", OCI_LAYER_FOREIGN},
	{"application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", OCI_LAYER_FOREIGN},
	{"application/vnd.oci.image.layer.nondistributable.v1.tar+zstd", OCI_LAYER_FOREIGN},
};

enum oci_media oci_media_of(struct view media_type)
{
	media_type = view_trim(view_first(media_type, view_find(media_type, ';')));
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (view_iis(media_type, types[i].type))
			return types[i].media;
	return OCI_UNKNOWN;
}

static bool is_layer(enum oci_media m)
{
	return m == OCI_LAYER_TAR || m == OCI_LAYER_GZIP || m == OCI_LAYER_ZSTD;
}

/* json.h's complaints are about requests; here they say that an image is bad. */
static int bad(struct err *e)
{
	e->code = -EBADMSG;
	return e->code;
}

static int out_of_room(struct err *e)
{
	return err_set(e, -EFBIG, "the document is too large");
}

/* 1 = there, 0 = absent; copied, so that the JSON can go. */
static int copy_string(const struct json *v, const char *key, struct arena *a, struct view *ret,
		       struct err *e)
{
	struct view text;
	int r = json_field_string(v, key, &text, e);

	if (r < 0)
		return bad(e);
	if (r == 0)
		return 0;
	if (text.len > TYPE_MAX)
		return err_set(e, -EBADMSG, "'%s' is longer than %d characters", key, TYPE_MAX);
	return arena_view(a, text, ret) < 0 ? out_of_room(e) : 1;
}

static int read_platform(const struct json *v, struct arena *a, struct oci_platform *ret,
			 struct err *e)
{
	const struct json *platform = NULL;
	int r = json_field_object(v, "platform", &platform, e);

	if (r <= 0)
		return r < 0 ? bad(e) : 0;
	r = copy_string(platform, "os", a, &ret->os, e);
	if (r >= 0)
		r = copy_string(platform, "architecture", a, &ret->arch, e);
	if (r >= 0)
		r = copy_string(platform, "variant", a, &ret->variant, e);
	return r < 0 ? r : 0;
}

static int read_descriptor(const struct json *v, struct arena *a, struct oci_descriptor *ret,
			   struct err *e)
{
	struct oci_descriptor d = {0};
	struct view digest = VIEW_NONE;
	int64_t size = -1;
	int r;

	if (!v || json_kind(v) != JSON_OBJECT)
		return err_set(e, -EBADMSG, "a descriptor must be an object");
	r = copy_string(v, "mediaType", a, &d.media_type, e);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(e, -EBADMSG, "a descriptor has no mediaType");
	if (json_field_string(v, "digest", &digest, e) < 0 ||
	    json_field_int(v, "size", 0, INT64_MAX, &size, e) < 0)
		return bad(e);
	if (view_starts(digest, VIEW("sha512:")))
		return err_set(e, -EOPNOTSUPP, "digests other than sha256 are not supported");
	if (!image_ref_digest_valid(digest))
		return err_set(e, -EBADMSG, "a descriptor has no valid sha256 digest");
	if (size < 0)
		return err_set(e, -EBADMSG, "the descriptor of %.19s has no size", digest.p);
	d.media = oci_media_of(d.media_type);
	d.size = (uint64_t)size;
	memcpy(d.digest, digest.p, digest.len);
	r = read_platform(v, a, &d.platform, e);
	if (r == 0)
		*ret = d;
	return r;
}

static int read_list(const struct json *list, size_t max, struct arena *a, struct oci_document *ret,
		     struct err *e)
{
	size_t n = json_len(list);

	if (n > max)
		return err_set(e, -EFBIG, "there are %zu entries; %zu is the limit", n, max);
	ret->items = arena_alloc(a, MAX(n, (size_t)1) * sizeof(*ret->items));
	if (!ret->items)
		return out_of_room(e);
	for (size_t i = 0; i < n; i++) {
		int r = read_descriptor(json_at(list, i), a, &ret->items[i], e);

		if (r < 0)
			return err_ctx(e, "entry %zu", i);
	}
	ret->items_n = n;
	return 0;
}

static int check_config_media(const struct oci_descriptor *c, struct err *e)
{
	if (c->media == OCI_CONFIG)
		return 0;
	if (is_layer(c->media) || c->media == OCI_MANIFEST || c->media == OCI_INDEX)
		return err_set(e, -EBADMSG,
			       "the manifest names a " VIEW_FMT " as its configuration",
			       VIEW_ARG(c->media_type));
	return err_set(e, -EOPNOTSUPP,
		       "this is an artifact, not an image: its configuration is " VIEW_FMT,
		       VIEW_ARG(c->media_type));
}

static int check_layer_media(const struct oci_descriptor *d, struct err *e)
{
	if (is_layer(d->media))
		return 0;
	if (d->media == OCI_LAYER_FOREIGN)
		return err_set(e, -EOPNOTSUPP,
			       "layer %.19s may not be distributed by registries (" VIEW_FMT ")",
			       d->digest, VIEW_ARG(d->media_type));
	if (d->media != OCI_UNKNOWN)
		return err_set(e, -EBADMSG, "the manifest names a " VIEW_FMT " as a layer",
			       VIEW_ARG(d->media_type));
	return err_set(e, -EOPNOTSUPP, "layers of type " VIEW_FMT " are not supported",
		       VIEW_ARG(d->media_type));
}

static int read_manifest(const struct json *v, struct arena *a, struct oci_document *ret,
			 struct err *e)
{
	const struct json *config = NULL, *layers = NULL;
	int r;

	if (json_field_object(v, "config", &config, e) < 0 ||
	    json_field_array(v, "layers", &layers, e) < 0)
		return bad(e);
	if (!config || !layers)
		return err_set(e, -EBADMSG, "a manifest must have a config and layers");
	r = read_descriptor(config, a, &ret->config, e);
	if (r < 0)
		return err_ctx(e, "config");
	r = check_config_media(&ret->config, e);
	if (r == 0 && ret->config.size > OCI_CONFIG_MAX)
		r = err_set(e, -EFBIG, "the configuration is larger than %d bytes", OCI_CONFIG_MAX);
	if (r == 0)
		r = read_list(layers, OCI_LAYERS_MAX, a, ret, e);
	for (size_t i = 0; r == 0 && i < ret->items_n; i++)
		r = check_layer_media(&ret->items[i], e);
	return r;
}

static int read_index(const struct json *v, struct arena *a, struct oci_document *ret,
		      struct err *e)
{
	const struct json *manifests = NULL;
	int r;

	if (json_field_array(v, "manifests", &manifests, e) < 0)
		return bad(e);
	if (!manifests)
		return err_set(e, -EBADMSG, "an index must have manifests");
	r = read_list(manifests, OCI_ENTRIES_MAX, a, ret, e);
	for (size_t i = 0; r == 0 && i < ret->items_n; i++)
		if (is_layer(ret->items[i].media) || ret->items[i].media == OCI_CONFIG)
			r = err_set(e, -EBADMSG, "the index names a " VIEW_FMT " as a manifest",
				    VIEW_ARG(ret->items[i].media_type));
	return r;
}

/* What the members make of it; a document that could be two things is neither. */
static int kind_by_members(const struct json *v, enum oci_media *ret, struct err *e)
{
	bool manifest = json_get(v, "config") || json_get(v, "layers");
	bool index = json_get(v, "manifests") != NULL;
	bool schema1 = json_get(v, "fsLayers") || json_get(v, "signatures");

	if (manifest + index + schema1 > 1)
		return err_set(e, -EBADMSG,
			       "the document has members of more than one kind of manifest");
	*ret = manifest ? OCI_MANIFEST : index ? OCI_INDEX : schema1 ? OCI_SCHEMA1 : OCI_UNKNOWN;
	return 0;
}

/* Types that say nothing of the kind ("application/json") are no contradiction. */
static int agree(struct view type, const char *where, enum oci_media kind, struct err *e)
{
	enum oci_media said = oci_media_of(type);

	if (said == OCI_UNKNOWN || said == kind)
		return 0;
	return err_set(e, -EBADMSG, "%s says " VIEW_FMT ", the content is something else", where,
		       VIEW_ARG(view_first(type, TYPE_MAX)));
}

static int find_kind(const struct json *v, struct view content_type, enum oci_media *ret,
		     struct err *e)
{
	struct view type = VIEW_NONE;
	int64_t version = 0;
	int r;

	if (json_field_int(v, "schemaVersion", INT64_MIN, INT64_MAX, &version, e) < 0 ||
	    json_field_string(v, "mediaType", &type, e) < 0)
		return bad(e);
	r = kind_by_members(v, ret, e);
	if (r < 0)
		return r;
	if (version == 1 || *ret == OCI_SCHEMA1 || oci_media_of(type) == OCI_SCHEMA1 ||
	    oci_media_of(content_type) == OCI_SCHEMA1)
		return err_set(e, -EOPNOTSUPP,
			       "the registry has this image in Docker's schema 1 only, which is "
			       "obsolete and not supported: push it again with a current client");
	if (version != 2)
		return err_set(e, -EBADMSG, "schemaVersion must be 2");
	if (*ret == OCI_UNKNOWN)
		return err_set(e, -EBADMSG, "this is neither a manifest nor an index");
	r = agree(type, "mediaType", *ret, e);
	if (r == 0 && oci_media_of(type) == OCI_UNKNOWN && type.len > 0)
		r = err_set(e, -EOPNOTSUPP, "documents of type " VIEW_FMT " are not supported",
			    VIEW_ARG(view_first(type, TYPE_MAX)));
	return r < 0 ? r : agree(content_type, "the Content-Type", *ret, e);
}

int oci_document_parse(struct view text, struct view content_type, struct arena *a,
		       struct oci_document *ret, struct err *e)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct oci_document doc = {0};
	int r;

	if (text.len > OCI_MANIFEST_MAX)
		return err_set(e, -EFBIG, "the manifest is larger than %d bytes", OCI_MANIFEST_MAX);
	r = json_parse(text, 0, &v, e);
	if (r < 0)
		return bad(e);
	if (json_kind(v) != JSON_OBJECT)
		return err_set(e, -EBADMSG, "a manifest must be an object");
	r = find_kind(v, content_type, &doc.kind, e);
	if (r == 0)
		r = doc.kind == OCI_MANIFEST ? read_manifest(v, a, &doc, e)
					     : read_index(v, a, &doc, e);
	if (r == 0)
		*ret = doc;
	return r;
}
