/*
 * server/image_out.c - pack, then export or push.
 */
#include "server/image_out.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"
#include "codec/image_ref.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"
#include "server/blobs.h"
#include "server/config.h"
#include "server/failure.h"
#include "server/job_failure.h"
#include "server/jobs.h"
#include "server/layers.h"
#include "server/platform.h"
#include "server/registries.h"
#include "server/sandbox.h"
#include "server/uploads.h"

#define CONFIG_MAX ((size_t)9 << 20)
#define MEDIA_MAX  128
#define OUTS_MAX   16 /* each takes minutes, whether its client waits or not */

struct packed {
	char digest[IMAGE_REF_DIGEST_LEN + 1], diff_id[IMAGE_REF_DIGEST_LEN + 1];
	char media_type[MEDIA_MAX];
	int64_t size;
};

struct out {
	struct list link;
	struct image_outs *all;
	struct job *job;
	struct sandbox_root root;
	char *config;
	struct strv names;
	struct packed *layers;
	size_t layers_n;
	/* export */
	char upload[UPLOAD_NAME_MAX];
	image_export_fn *exported;
	/* push */
	char *key, *auth;
	image_push_fn *pushed;
	void *arg;
};

struct image_outs {
	const struct config *config;
	struct jobs *jobs;
	struct layers *layers;
	struct list all;
	unsigned n;
};

/* ---- the end ---- */

static void out_free(struct out *o)
{
	list_remove(&o->link);
	o->all->n--;
	job_cancel(o->job);
	layers_leave(o->all->layers, o->root.layers, o->root.layers_n);
	/* Another that is under way may use the same blobs; then they are swept one day. */
	for (size_t i = 0; list_empty(&o->all->all) && i < o->layers_n; i++)
		blob_remove(o->layers[i].digest);
	sandbox_root_done(&o->root);
	free(o->config);
	strv_done(&o->names);
	free(o->layers);
	free(o->key);
	if (o->auth)
		explicit_bzero(o->auth, strlen(o->auth));
	free(o->auth);
	free(o);
}

static void end(struct out *o, const char *digest, uint64_t bytes, const struct failure *f)
{
	image_export_fn *exported = o->exported;
	image_push_fn *pushed = o->pushed;
	void *arg = o->arg;
	char upload[UPLOAD_NAME_MAX];

	memcpy(upload, o->upload, sizeof(upload));
	out_free(o);
	if (pushed)
		pushed(arg, digest, f);
	else
		exported(arg, f ? NULL : upload, bytes, f);
}

static void fail(struct out *o, const char *code, const char *message)
{
	const char *ours = o->pushed ? "IMAGE::PUSH_FAILED" : "IMAGE::EXPORT_FAILED";
	struct failure f = FAILURE_NONE;

	/* What a registry does not find or like is nothing that is missing here. */
	if (strcmp(code, "NO_SPACE") == 0 || strcmp(code, JOB_CODE_BUSY) == 0)
		job_failure(&f, code, ours, "%s", message);
	else
		failure_set(&f, 500, ours, "%s", message);
	if (!o->pushed)
		upload_remove(o->upload);
	end(o, NULL, 0, &f);
}

static void job_failed(void *arg, const char *code, const char *message)
{
	struct out *o = arg;

	o->job = NULL;
	fail(o, code, message);
}

/* ---- the configuration ---- */

static void put_diff_ids(struct json_writer *w, const struct out *o)
{
	json_write_key(w, "rootfs");
	json_write_object(w);
	json_put_cstr(w, "type", "layers");
	json_write_key(w, "diff_ids");
	json_write_array(w);
	for (size_t i = 0; i < o->layers_n; i++)
		json_write_cstr(w, o->layers[i].diff_id);
	json_write_array_end(w);
	json_write_object_end(w);
}

static void put_strings(struct json_writer *w, const char *key, const struct strv *s)
{
	json_write_key(w, key);
	json_write_array(w);
	for (size_t i = 0; i < s->len; i++)
		json_write_cstr(w, s->v[i]);
	json_write_array_end(w);
}

/* For what has no image's configuration: a snapshot of the host image, say. */
static void put_own_config(struct json_writer *w, const struct sandbox_root *r)
{
	json_put_cstr(w, "os", "linux");
	json_put_cstr(w, "architecture", platform_arch());
	json_write_key(w, "config");
	json_write_object(w);
	json_write_key(w, "Env");
	json_write_array(w);
	for (size_t i = 0; i < r->env.n; i++) {
		osb_cleanup(mem_freep) char *text =
			mem_printf("%s=%s", r->env.v[i].name, r->env.v[i].value);

		json_write_cstr(w, text);
	}
	json_write_array_end(w);
	if (r->user)
		json_put_cstr(w, "User", r->user);
	if (r->cwd)
		json_put_cstr(w, "WorkingDir", r->cwd);
	if (r->start.len)
		put_strings(w, "Cmd", &r->start);
	json_write_object_end(w);
}

/* The image's own, but for its layers: packed again they have other digests, and its history does
 * not fit them any more. */
static int put_config(struct json_writer *w, const struct out *o, struct err *e)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	const struct json *member;
	struct view key;
	void *it = NULL;
	int r = o->config ? json_parse(view_of(o->config), 0, &v, e) : 0;

	if (r < 0)
		return r;
	json_write_object(w);
	if (!v)
		put_own_config(w, &o->root);
	while (v && json_next(v, &it, &key, &member)) {
		if (view_is(key, "rootfs") || view_is(key, "history"))
			continue;
		json_write_key_view(w, key);
		json_write_json(w, member);
	}
	put_diff_ids(w, o);
	json_write_object_end(w);
	return 0;
}

static void put_layers(struct json_writer *w, const struct out *o)
{
	json_write_key(w, "layers");
	json_write_array(w);
	for (size_t i = 0; i < o->layers_n; i++) {
		json_write_object(w);
		json_put_cstr(w, "digest", o->layers[i].digest);
		json_put_cstr(w, "diff_id", o->layers[i].diff_id);
		json_put_int(w, "size", o->layers[i].size);
		json_put_cstr(w, "media_type", o->layers[i].media_type);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

/* ---- export ---- */

static void export_done(void *arg, const struct json *result)
{
	struct out *o = arg;
	int64_t bytes = 0;

	o->job = NULL;
	(void)json_int(json_get(result, "bytes"), &bytes);
	end(o, NULL, (uint64_t)MAX(bytes, 0), NULL);
}

static const struct job_events export_events = {.done = export_done, .failed = job_failed};

static void begin_export(struct out *o)
{
	osb_cleanup(buf_done) struct buf request = BUF_INIT(JOB_REQUEST_MAX);
	struct err e = ERR_NONE;
	struct json_writer w;

	json_writer_init(&w, &request);
	json_write_object(&w);
	json_put_cstr(&w, "op", "export");
	json_put_cstr(&w, "upload", o->upload);
	put_strings(&w, "names", &o->names);
	put_layers(&w, o);
	json_write_key(&w, "config");
	if (put_config(&w, o, &e) < 0) {
		fail(o, "INTERNAL", e.msg);
		return;
	}
	json_write_object_end(&w);
	if (json_writer_end(&w) < 0)
		fail(o, "TOO_LARGE", "the image's configuration is too large");
	else
		o->job = job_start(o->all->jobs, JOB_OUT, buf_view(&request), &export_events, o);
}

/* ---- push ---- */

static void push_done(void *arg, const struct json *result)
{
	char digest[IMAGE_REF_DIGEST_LEN + 1] = "";
	struct out *o = arg;
	struct view text;

	o->job = NULL;
	if (json_str(json_get(result, "digest"), &text) && image_ref_digest_valid(text))
		memcpy(digest, text.p, text.len);
	end(o, digest, 0, NULL);
}

static const struct job_events push_events = {.done = push_done, .failed = job_failed};

static int write_config(const struct out *o, char digest[static BLOB_DIGEST_SIZE], size_t *ret_size,
			struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(CONFIG_MAX);
	struct json_writer w;
	int r;

	json_writer_init(&w, &text);
	r = put_config(&w, o, e);
	if (r == 0)
		r = json_writer_end(&w);
	if (r < 0)
		return r;
	*ret_size = text.len;
	return blob_write(buf_view(&text), digest, e);
}

static void begin_push(struct out *o)
{
	osb_cleanup(buf_done) struct buf request = BUF_INIT(JOB_REQUEST_MAX);
	char digest[BLOB_DIGEST_SIZE];
	struct err e = ERR_NONE;
	struct json_writer w;
	size_t size;

	if (write_config(o, digest, &size, &e) < 0) {
		fail(o, "INTERNAL", e.msg);
		return;
	}
	json_writer_init(&w, &request);
	json_write_object(&w);
	json_put_cstr(&w, "op", "push");
	json_put_cstr(&w, "reference", o->key);
	registries_put(&w, o->all->config, o->auth);
	json_put_cstr(&w, "config_digest", digest);
	json_put_int(&w, "config_size", (int64_t)size);
	put_layers(&w, o);
	json_write_object_end(&w);
	if (json_writer_end(&w) < 0)
		fail(o, "TOO_LARGE", "the image has too many layers");
	else
		o->job = job_start(o->all->jobs, JOB_PUSH, buf_view(&request), &push_events, o);
	if (request.mem)
		explicit_bzero(request.mem, request.cap);
}

/* ---- pack ---- */

static bool get_packed(const struct json *v, struct packed *ret)
{
	struct view digest, diff_id, media;

	if (!json_str(json_get(v, "digest"), &digest) || !image_ref_digest_valid(digest) ||
	    !json_str(json_get(v, "diff_id"), &diff_id) || !image_ref_digest_valid(diff_id) ||
	    !json_str(json_get(v, "media_type"), &media) || media.len >= sizeof(ret->media_type) ||
	    !json_int(json_get(v, "size"), &ret->size))
		return false;
	memcpy(ret->digest, digest.p, digest.len);
	memcpy(ret->diff_id, diff_id.p, diff_id.len);
	memcpy(ret->media_type, media.p, media.len);
	return true;
}

static void packed(void *arg, const struct json *result)
{
	const struct json *layers = json_get(result, "layers");
	struct out *o = arg;

	o->job = NULL;
	o->layers = mem_new_array(struct packed, json_len(layers) + 1);
	for (size_t i = 0; i < json_len(layers); i++) {
		if (!get_packed(json_at(layers, i), &o->layers[i])) {
			fail(o, "INTERNAL", "a packed layer has no digest");
			return;
		}
		o->layers_n++;
	}
	if (o->pushed)
		begin_push(o);
	else
		begin_export(o);
}

static const struct job_events pack_events = {.done = packed, .failed = job_failed};

static void put_number(struct json_writer *w, uint64_t number, bool host_usr)
{
	json_write_object(w);
	json_put_int(w, "number", (int64_t)number);
	json_put_bool(w, "host_usr", host_usr);
	json_write_object_end(w);
}

static void begin_pack(struct out *o)
{
	osb_cleanup(buf_done) struct buf request = BUF_INIT(JOB_REQUEST_MAX);
	struct json_writer w;

	json_writer_init(&w, &request);
	json_write_object(&w);
	json_put_cstr(&w, "op", "pack");
	json_put_cstr(&w, "compress", "gzip");
	json_write_key(&w, "layers");
	json_write_array(&w);
	if (o->root.host_base)
		put_number(&w, 0, false);
	for (size_t i = 0; i < o->root.layers_n; i++) {
		const struct layer *l = layers_get(o->all->layers, o->root.layers[i]);

		put_number(&w, o->root.layers[i], l && l->host_usr);
	}
	json_write_array_end(&w);
	json_write_object_end(&w);
	/* At most some hundred numbers: they fit. */
	if (json_writer_end(&w) == 0)
		o->job = job_start(o->all->jobs, JOB_OUT, buf_view(&request), &pack_events, o);
}

static struct out *out_new(struct image_outs *all, const struct image_out_content *c, void *arg)
{
	struct out *o = mem_new(struct out);

	o->all = all;
	o->arg = arg;
	sandbox_root_copy(&o->root, c->root);
	layers_use(all->layers, o->root.layers, o->root.layers_n);
	o->config = c->config ? mem_strdup(c->config) : NULL;
	if (c->names)
		strv_copy(&o->names, strv_args(c->names));
	list_push_back(&all->all, &o->link);
	all->n++;
	return o;
}

static bool has_room(const struct image_outs *all, struct failure *f)
{
	if (all->n < OUTS_MAX)
		return true;
	failure_set(f, 503, "IMAGE::TOO_MANY_EXPORTS",
		    "%u images are being exported or pushed, more must wait", all->n);
	f->retry_after_s = 5;
	return false;
}

void image_export(struct image_outs *all, const struct image_out_content *c, image_export_fn *fn,
		  void *arg)
{
	struct failure f = FAILURE_NONE;
	struct out *o;

	if (!has_room(all, &f)) {
		fn(arg, NULL, 0, &f);
		return;
	}
	o = out_new(all, c, arg);
	o->exported = fn;
	upload_name(o->upload);
	begin_pack(o);
}

void image_push(struct image_outs *all, const struct image_out_content *c, const char *key,
		const char *auth, image_push_fn *fn, void *arg)
{
	struct failure f = FAILURE_NONE;
	struct out *o;

	if (!has_room(all, &f)) {
		fn(arg, NULL, &f);
		return;
	}
	o = out_new(all, c, arg);
	o->pushed = fn;
	o->key = mem_strdup(key);
	o->auth = auth ? mem_strdup(auth) : NULL;
	begin_pack(o);
}

struct image_outs *image_outs_new(const struct config *config, struct jobs *jobs,
				  struct layers *layers)
{
	struct image_outs *o = mem_new(struct image_outs);

	o->config = config;
	o->jobs = jobs;
	o->layers = layers;
	list_init(&o->all);
	return o;
}

bool image_outs_idle(const struct image_outs *o)
{
	return list_empty(&o->all);
}

void image_outs_free(struct image_outs *o)
{
	struct failure f = FAILURE_NONE;

	if (!o)
		return;
	failure_set(&f, 503, "GENERAL::STOPPING", "the server is stopping");
	while (!list_empty(&o->all))
		end(list_entry(o->all.next, struct out, link), NULL, 0, &f);
	free(o);
}
