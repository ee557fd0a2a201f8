/*
 * image/registry_pull.c - from a name to a manifest, a configuration and the blobs of its layers.
 */
#include <errno.h>
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "image/registry_blobs.h"
#include "image/registry_int.h"

struct pull {
	struct registry *r;
	const struct registry_pull *p;
	struct registry_document text;
	struct oci_document manifest;
	struct oci_config config;
	struct registry_document config_text;
};

static char *manifest_path(const struct registry *r, const char *name)
{
	return mem_printf("/v2/%s/manifests/%s", r->o->ref.repository, name);
}

/* `wanted` is NULL at the top of a name that is a tag. */
static int get_document(struct pull *x, const char *name, const char *wanted,
			struct oci_document *ret, struct err *e)
{
	osb_cleanup(mem_freep) char *path = manifest_path(x->r, name);
	int r = registry_get(x->r, path, oci_accept_manifests, wanted, &x->text, e);

	if (r < 0)
		return r;
	return oci_document_parse(buf_view(&x->text.body), view_of(x->text.content_type),
				  &x->r->arena, ret, e);
}

/* An entry that said manifest must be one, of the size that was said. */
static int check_entry(const struct pull *x, const struct oci_descriptor *d,
		       const struct oci_document *doc, struct err *e)
{
	if (doc->kind != d->media)
		return err_set(e, -EBADMSG, "the index says that %.19s... is something else",
			       d->digest);
	if (x->text.body.len != d->size)
		return err_set(e, -EBADMSG, "%.19s... has %zu bytes, the index says %ju", d->digest,
			       x->text.body.len, (uintmax_t)d->size);
	return 0;
}

static int find_manifest(struct pull *x, struct err *e)
{
	const struct image_ref *ref = &x->r->o->ref;
	const char *wanted = ref->digest[0] ? ref->digest : NULL;
	int r = get_document(x, wanted ? wanted : ref->tag, wanted, &x->manifest, e);

	for (int depth = 1; r == 0 && x->manifest.kind == OCI_INDEX; depth++) {
		const struct oci_descriptor *d;

		if (depth == OCI_DEPTH_MAX)
			return err_set(e, -EBADMSG, "indexes are nested more than %d deep",
				       OCI_DEPTH_MAX - 1);
		r = oci_index_choose(&x->manifest, &x->p->platform, &d, e);
		if (r == 0)
			r = get_document(x, d->digest, d->digest, &x->manifest, e);
		if (r == 0)
			r = check_entry(x, d, &x->manifest, e);
	}
	return r;
}

static int find_config(struct pull *x, struct err *e)
{
	const struct oci_descriptor *d = &x->manifest.config;
	osb_cleanup(mem_freep) char *path =
		mem_printf("/v2/%s/blobs/%s", x->r->o->ref.repository, d->digest);
	int r;

	x->config_text.body = BUF_INIT(d->size);
	r = registry_get(x->r, path, NULL, d->digest, &x->config_text, e);
	if (r == -EFBIG || (r == 0 && x->config_text.body.len != d->size))
		return err_set(e, -EBADMSG,
			       "the configuration has another size than the manifest "
			       "says");
	if (r == 0)
		r = oci_config_parse(buf_view(&x->config_text.body), &x->r->arena, &x->config, e);
	if (r == 0)
		r = oci_config_check(&x->config, x->manifest.items_n, &x->p->platform, e);
	return r < 0 ? err_ctx(e, "configuration") : 0;
}

static int check_sizes(const struct pull *x, struct err *e)
{
	const struct registry_limits *l = &x->r->o->limits;

	for (size_t i = 0; i < x->manifest.items_n; i++)
		if (x->manifest.items[i].size > l->blob_bytes)
			return err_set(e, -EFBIG, "layer %.19s... has %ju bytes; %ju is the limit",
				       x->manifest.items[i].digest,
				       (uintmax_t)x->manifest.items[i].size,
				       (uintmax_t)l->blob_bytes);
	return 0;
}

static void tell_manifest(const struct pull *x, const char *digest)
{
	struct registry_image image = {
		.manifest = &x->manifest,
		.config = &x->config,
		.config_text = buf_view(&x->config_text.body),
	};

	snprintf(image.digest, sizeof(image.digest), "%s", digest);
	x->p->events.manifest(x->p->events.arg, &image);
}

int registry_pull(struct registry *r, const struct registry_pull *p, struct err *e)
{
	struct pull x = {.r = r, .p = p, .text.body = BUF_INIT(OCI_MANIFEST_MAX)};
	int failed = find_manifest(&x, e);

	if (failed == 0)
		failed = check_sizes(&x, e);
	if (failed == 0)
		failed = find_config(&x, e);
	if (failed == 0) {
		tell_manifest(&x, x.text.digest);
		failed = registry_fetch_layers(r, p, &x.manifest, &x.config, e);
	}
	buf_done(&x.text.body);
	buf_done(&x.config_text.body);
	return failed;
}
