/*
 * imager/fetch.c - decodes a request for the registry client, and reports what becomes of it.
 */
#include "imager/fetch.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "image/registry.h"
#include "imager/job.h"

#define LINE_MAX_   (OCI_CONFIG_MAX + (1 << 20))
#define SHORT_LINE  1024
#define STALL_MAX_S 3600

/* ---- what is asked ---- */

static int take_string(const struct json *v, const char *key, struct view *ret, struct err *e)
{
	int r = json_field_string(v, key, ret, e);

	if (r == 0)
		return err_set(e, -EINVAL, "'%s' is missing", key);
	return r < 0 ? r : 0;
}

static int take_number(const struct json *v, const char *key, int64_t max, unsigned *ret,
		       struct err *e)
{
	int64_t n = *ret;
	int r = json_field_int(v, key, 1, max, &n, e);

	*ret = (unsigned)n;
	return r < 0 ? r : 0;
}

static int take_bytes(const struct json *v, const char *key, uint64_t *ret, struct err *e)
{
	int64_t n = (int64_t)*ret;
	int r = json_field_int(v, key, 0, INT64_MAX, &n, e);

	*ret = (uint64_t)n;
	return r < 0 ? r : 0;
}

static int take_limits(const struct json *request, struct registry_limits *ret, struct err *e)
{
	const struct json *v = NULL;
	int r = json_field_object(request, "limits", &v, e);

	*ret = registry_default_limits;
	if (r >= 0)
		r = take_bytes(v, "blob_bytes", &ret->blob_bytes, e);
	if (r >= 0)
		r = take_bytes(v, "total_bytes", &ret->total_bytes, e);
	if (r >= 0)
		r = take_number(v, "stall_seconds", STALL_MAX_S, &ret->stall_s, e);
	if (r >= 0)
		r = take_number(v, "attempts", 100, &ret->attempts, e);
	if (r >= 0)
		r = take_number(v, "backoff_ms", 60000, &ret->backoff_ms, e);
	if (r >= 0)
		r = take_number(v, "parallel", 16, &ret->parallel, e);
	return r < 0 ? r : 0;
}

static int take_settings(const struct json *request, struct registry_options *o, struct err *e)
{
	const struct json *auth = NULL, *registries = NULL;
	int r = json_field_object(request, "auth", &auth, e);

	if (r > 0)
		r = take_string(auth, "username", &o->username, e);
	if (r >= 0 && auth)
		r = take_string(auth, "password", &o->password, e);
	if (r >= 0)
		r = json_field_object(request, "registries", &registries, e);
	if (r >= 0)
		r = json_field_object(registries, "mirrors", &o->mirrors, e);
	if (r >= 0)
		r = json_field_array(registries, "insecure", &o->insecure, e);
	if (r >= 0)
		r = json_field_string(registries, "config", &o->docker_config, e);
	return r < 0 ? r : 0;
}

static int take_options(const struct json *request, struct registry_options *o, struct err *e)
{
	struct view reference;
	int r = take_string(request, "reference", &reference, e);

	o->blobs_fd = JOB_DIR_FD;
	if (r == 0)
		r = image_ref_parse(reference, &o->ref, e);
	if (r == 0)
		r = take_settings(request, o, e);
	return r == 0 ? take_limits(request, &o->limits, e) : r;
}

static int take_platform(const struct json *request, struct oci_platform *ret, struct err *e)
{
	const struct json *v = NULL;
	int r = json_field_object(request, "platform", &v, e);

	if (r == 0)
		r = err_set(e, -EINVAL, "'platform' is missing");
	if (r >= 0)
		r = take_string(v, "os", &ret->os, e);
	if (r >= 0)
		r = take_string(v, "arch", &ret->arch, e);
	if (r >= 0)
		r = json_field_string(v, "variant", &ret->variant, e);
	return r < 0 ? r : 0;
}

/* ---- what is told ---- */

static void write_layers(struct json_writer *w, const struct registry_image *image)
{
	json_write_key(w, "layers");
	json_write_array(w);
	for (size_t i = 0; i < image->manifest->items_n; i++) {
		const struct oci_descriptor *d = &image->manifest->items[i];

		json_write_object(w);
		json_put_cstr(w, "digest", d->digest);
		json_put_cstr(w, "diff_id", image->config->diff_ids[i]);
		json_write_key(w, "size");
		json_write_uint(w, d->size);
		json_put_string(w, "media_type", d->media_type);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void tell_manifest(void *arg, const struct registry_image *image)
{
	osb_cleanup(buf_done) struct buf line = BUF_INIT(LINE_MAX_);
	struct json_writer w;

	json_writer_init(&w, &line);
	json_write_object(&w);
	json_write_key(&w, "manifest");
	json_write_object(&w);
	json_put_cstr(&w, "digest", image->digest);
	json_put_cstr(&w, "config_digest", image->manifest->config.digest);
	json_write_key(&w, "config");
	json_write_text(&w, image->config_text);
	write_layers(&w, image);
	json_write_object_end(&w);
	json_write_object_end(&w);
	if (json_writer_end(&w) == 0)
		job_send(arg, &line);
}

static void tell_progress(void *arg, const struct registry_progress *p)
{
	osb_cleanup(buf_done) struct buf line = BUF_INIT(SHORT_LINE);
	const struct {
		const char *name;
		uint64_t n;
	} members[] = {
		{"bytes", p->bytes},
		{"total", p->total},
		{"layers_done", p->layers_done},
		{"layers", p->layers},
	};
	struct json_writer w;

	json_writer_init(&w, &line);
	json_write_object(&w);
	json_write_key(&w, "progress");
	json_write_object(&w);
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		json_write_key(&w, members[i].name);
		json_write_uint(&w, members[i].n);
	}
	json_write_object_end(&w);
	json_write_object_end(&w);
	if (json_writer_end(&w) == 0)
		job_send_if_room(arg, &line);
}

/* {"outer":{"inner":"text"}} */
static void tell_text(struct job *j, const char *outer, const char *inner, const char *text)
{
	osb_cleanup(buf_done) struct buf line = BUF_INIT(SHORT_LINE);
	struct json_writer w;

	json_writer_init(&w, &line);
	json_write_object(&w);
	json_write_key(&w, outer);
	json_write_object(&w);
	json_put_cstr(&w, inner, text);
	json_write_object_end(&w);
	json_write_object_end(&w);
	if (json_writer_end(&w) == 0)
		job_send(j, &line);
}

static void tell_blob(void *arg, const char *digest)
{
	tell_text(arg, "progress", "blob", digest);
}

static struct registry_events events_for(struct job *j)
{
	return (struct registry_events){tell_manifest, tell_progress, tell_blob, j};
}

/* ---- what is done ---- */

static int pull(struct job *j, struct err *e)
{
	struct registry_options o = {.way = REGISTRY_PULL};
	osb_cleanup(registry_freep) struct registry *registry = NULL;
	struct registry_pull p = {.events = events_for(j)};
	int r = take_options(j->request, &o, e);

	if (r >= 0)
		r = take_platform(j->request, &p.platform, e);
	if (r >= 0)
		r = json_field_array(j->request, "have", &p.have, e);
	if (r >= 0)
		r = registry_new(&o, &registry, e);
	if (r >= 0)
		r = registry_pull(registry, &p, e);
	if (r >= 0)
		job_done(j);
	return r;
}

static int take_digest(const struct json *v, const char *key, struct registry_blob *ret,
		       struct err *e)
{
	struct view digest;
	int r = take_string(v, key, &digest, e);

	if (r < 0)
		return r;
	if (!image_ref_digest_valid(digest))
		return err_set(e, -EINVAL, "'%s' must be a sha256 digest", key);
	memcpy(ret->digest, digest.p, digest.len);
	return 0;
}

static int take_layers(const struct json *list, struct registry_blob layers[], struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_len(list); i++) {
		const struct json *v = json_at(list, i);

		r = take_digest(v, "digest", &layers[i], e);
		if (r == 0)
			r = take_bytes(v, "size", &layers[i].size, e);
		if (r == 0)
			r = take_string(v, "media_type", &layers[i].media_type, e);
	}
	return r;
}

static int take_push(const struct json *request, struct registry_push *p,
		     struct registry_blob layers[OCI_LAYERS_MAX], struct registry_options *o,
		     struct err *e)
{
	const struct json *list = NULL;
	int r = take_options(request, o, e);

	if (r >= 0)
		r = json_field_string(request, "mount_from", &o->mount_from, e);
	if (r > 0 && !image_ref_repository_valid(o->mount_from))
		r = err_set(e, -EINVAL, "'mount_from' must be a repository");
	if (r >= 0)
		r = take_digest(request, "config_digest", &p->config, e);
	if (r >= 0)
		r = take_bytes(request, "config_size", &p->config.size, e);
	if (r >= 0)
		r = json_field_array(request, "layers", &list, e);
	if (r >= 0 && json_len(list) > OCI_LAYERS_MAX)
		r = err_set(e, -EFBIG, "there are more than %d layers", OCI_LAYERS_MAX);
	p->layers = layers;
	p->layers_n = json_len(list);
	return r < 0 ? r : take_layers(list, layers, e);
}

static int push(struct job *j, struct err *e)
{
	osb_cleanup(mem_freep) struct registry_blob *layers =
		mem_new_array(struct registry_blob, OCI_LAYERS_MAX);
	osb_cleanup(registry_freep) struct registry *registry = NULL;
	struct registry_options o = {.way = REGISTRY_PUSH};
	struct registry_push p = {.events = events_for(j)};
	char digest[IMAGE_REF_DIGEST_LEN + 1];
	int r = take_push(j->request, &p, layers, &o, e);

	if (r >= 0)
		r = registry_new(&o, &registry, e);
	if (r >= 0)
		r = registry_push(registry, &p, digest, e);
	if (r >= 0)
		tell_text(j, "done", "digest", digest);
	return r;
}

static int run(struct job *j, struct err *e)
{
	struct view op = VIEW_NONE;
	int r = take_string(j->request, "op", &op, e);

	if (r < 0)
		return r;
	if (view_is(op, "pull"))
		return pull(j, e);
	if (view_is(op, "push"))
		return push(j, e);
	return err_set(e, -EINVAL, "there is no operation '%.20s'", op.p);
}

void fetch_run(struct job *j)
{
	struct err e = ERR_NONE;

	if (run(j, &e) < 0)
		job_failed(j, &e);
}
