/*
 * server/volume.c - volumes of a sandbox: kept, written down, handed to the runtime.
 */
#include "server/volume.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/view.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "runtime/runtime.h"
#include "server/failure.h"

static const char *const kind_name[VOLUME_KINDS_] = {
	[VOLUME_HOST] = "host",
	[VOLUME_NAMED] = "pvc",
	[VOLUME_OSSFS] = "ossfs",
};

void volume_forget_keys(struct volume *v)
{
	if (v->bucket.key_secret)
		explicit_bzero(v->bucket.key_secret, strlen(v->bucket.key_secret));
	free(take_ptr(v->bucket.key_secret));
}

static void volume_done(struct volume *v)
{
	volume_forget_keys(v);
	free(v->name);
	free(v->mount_path);
	free(v->below);
	free(v->path);
	free(v->claim);
	free(v->bucket.bucket);
	free(v->bucket.endpoint);
	free(v->bucket.version);
	free(v->bucket.key_id);
	strv_done(&v->bucket.options);
}

void volumes_list_done(struct volumes_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		volume_done(&l->v[i]);
	free(l->v);
	*l = (struct volumes_list){0};
}

struct volume *volumes_list_add(struct volumes_list *l)
{
	l->v = mem_resize(l->v, l->n + 1, sizeof(*l->v));
	l->v[l->n] = (struct volume){0};
	return &l->v[l->n++];
}

/* ---- in the store ---- */

static void put_text(struct json_writer *w, const char *key, const char *text)
{
	if (text)
		json_put_cstr(w, key, text);
}

static void format_one(struct json_writer *w, const struct volume *v)
{
	json_write_object(w);
	json_put_cstr(w, "kind", kind_name[v->kind]);
	json_put_cstr(w, "name", v->name);
	json_put_cstr(w, "mountPath", v->mount_path);
	json_put_cstr(w, "below", v->below);
	json_put_bool(w, "readOnly", v->read_only);
	json_put_int(w, "number", (int64_t)v->number);
	put_text(w, "path", v->path);
	put_text(w, "claim", v->claim);
	json_put_bool(w, "mustExist", v->must_exist);
	json_put_bool(w, "removeAfter", v->remove_after);
	json_put_bool(w, "made", v->made);
	put_text(w, "bucket", v->bucket.bucket);
	put_text(w, "endpoint", v->bucket.endpoint);
	json_write_object_end(w);
}

void volumes_list_format(struct json_writer *w, const char *key, const struct volumes_list *l)
{
	if (l->n == 0)
		return;
	json_write_key(w, key);
	json_write_array(w);
	for (size_t i = 0; i < l->n; i++)
		format_one(w, &l->v[i]);
	json_write_array_end(w);
}

static char *get_text(const struct json *v, const char *key)
{
	struct view text;

	return json_str(json_get(v, key), &text) ? mem_strndup(text.p, text.len) : NULL;
}

static char *get_text_or_empty(const struct json *v, const char *key)
{
	char *text = get_text(v, key);

	return text ? text : mem_strdup("");
}

static bool get_bool(const struct json *v, const char *key)
{
	bool b = false;

	return json_bool(json_get(v, key), &b) && b;
}

static enum volume_kind kind_of(const struct json *v)
{
	struct view name = VIEW_NONE;

	(void)json_str(json_get(v, "kind"), &name);
	for (int i = 0; i < VOLUME_KINDS_; i++)
		if (view_is(name, kind_name[i]))
			return (enum volume_kind)i;
	return VOLUME_NAMED;
}

/* The text is our own: what is missing in it is empty. */
void volumes_list_parse(const struct json *array, struct volumes_list *ret)
{
	for (size_t i = 0; i < json_len(array); i++) {
		const struct json *v = json_at(array, i);
		struct volume *out = volumes_list_add(ret);
		int64_t number = 0;

		(void)json_int(json_get(v, "number"), &number);
		out->kind = kind_of(v);
		out->name = get_text_or_empty(v, "name");
		out->mount_path = get_text_or_empty(v, "mountPath");
		out->below = get_text_or_empty(v, "below");
		out->read_only = get_bool(v, "readOnly");
		out->number = (uint64_t)number;
		out->path = get_text(v, "path");
		out->claim = get_text(v, "claim");
		out->must_exist = get_bool(v, "mustExist");
		out->remove_after = get_bool(v, "removeAfter");
		out->made = get_bool(v, "made");
		out->bucket.bucket = get_text(v, "bucket");
		out->bucket.endpoint = get_text(v, "endpoint");
	}
}

/* ---- for the runtime ---- */

struct runtime_volume *volumes_list_runtime(const struct volumes_list *l)
{
	static const int kinds[VOLUME_KINDS_] = {
		[VOLUME_HOST] = RUNTIME_VOLUME_HOST,
		[VOLUME_NAMED] = RUNTIME_VOLUME_NAMED,
		[VOLUME_OSSFS] = RUNTIME_VOLUME_MOUNTED,
	};
	struct runtime_volume *out = mem_new_array(struct runtime_volume, MAX(l->n, (size_t)1));

	for (size_t i = 0; i < l->n; i++) {
		const struct volume *v = &l->v[i];

		out[i] = (struct runtime_volume){
			.kind = kinds[v->kind],
			.number = v->number,
			.sub_path = v->below,
			.mount_path = v->mount_path,
			.read_only = v->read_only,
		};
	}
	return out;
}

/* "volumes[2]: ..." names one of the list. */
static const struct volume *named_in(const struct volumes_list *l, const char *message)
{
	const char *at = strstr(message, "volumes[");
	size_t i = at ? (size_t)strtoul(at + strlen("volumes["), NULL, 10) : l->n;

	return i < l->n ? &l->v[i] : NULL;
}

bool volumes_list_failure(const struct volumes_list *l, const struct err *e, struct failure *f)
{
	const struct volume *v = named_in(l, e->msg);
	bool leads_out = e->code == -EXDEV || e->code == -ELOOP;
	const char *code = "VOLUME::PVC_INSPECT_FAILED";
	int status = 500;

	if (!v)
		return false;
	if (strstr(e->msg, "mount point")) {
		status = 400;
		code = "VOLUME::INVALID_MOUNT_PATH";
	} else if (e->code == -EOPNOTSUPP) {
		status = 400;
		code = "VOLUME::UNSUPPORTED_BACKEND";
	} else if (v->kind == VOLUME_HOST) {
		status = leads_out ? 400 : 500;
		code = leads_out ? "VOLUME::HOST_PATH_NOT_ALLOWED"
				 : "VOLUME::HOST_PATH_CREATE_FAILED";
	} else if (leads_out || e->code == -ENOTDIR) {
		status = 400;
		code = "VOLUME::INVALID_SUB_PATH";
	}
	failure_set(f, status, code, "volume '%s': %s", v->name, strstr(e->msg, "volumes["));
	return true;
}
