/*
 * server/encode.c - what is unknown is left out, never null: typed clients stumble over nulls.
 */
#include "server/encode.h"

#include "base/view.h"
#include "codec/json_writer.h"
#include "codec/rfc3339.h"
#include "server/sandbox.h"

void encode_time(struct json_writer *w, const char *key, int64_t unix_us)
{
	char text[RFC3339_MAX];

	rfc3339_format(unix_us * 1000, text);
	json_put_cstr(w, key, text);
}

static void encode_pairs(struct json_writer *w, const char *key, const struct pairs *p)
{
	json_write_key(w, key);
	json_write_object(w);
	for (size_t i = 0; i < p->n; i++)
		json_put_cstr(w, p->v[i].name, p->v[i].value);
	json_write_object_end(w);
}

static void encode_status(struct json_writer *w, const struct sandbox *b)
{
	json_write_key(w, "status");
	json_write_object(w);
	json_put_cstr(w, "state", sandbox_state_name(b->state));
	json_put_cstr(w, "reason", b->reason);
	if (b->message)
		json_put_cstr(w, "message", b->message);
	encode_time(w, "lastTransitionAt", b->changed_us);
	json_write_object_end(w);
}

static void encode_platform(struct json_writer *w, const struct sandbox_spec *s)
{
	if (!s->os)
		return;
	json_write_key(w, "platform");
	json_write_object(w);
	json_put_cstr(w, "os", s->os);
	json_put_cstr(w, "arch", s->arch);
	json_write_object_end(w);
}

/* What both answers share, in the reference's order. */
static void encode_rest(struct json_writer *w, const struct sandbox *b)
{
	const struct sandbox_spec *s = &b->spec;

	encode_platform(w, s);
	encode_status(w, b);
	if (s->has_metadata)
		encode_pairs(w, "metadata", &s->metadata);
	if (s->extensions.n)
		encode_pairs(w, "extensions", &s->extensions);
	json_write_key(w, "entrypoint");
	json_write_array(w);
	for (size_t i = 0; i < s->entrypoint.len; i++)
		json_write_cstr(w, s->entrypoint.v[i]);
	json_write_array_end(w);
	if (b->expires_us)
		encode_time(w, "expiresAt", b->expires_us);
	encode_time(w, "createdAt", b->created_us);
}

void encode_created(struct json_writer *w, const struct sandbox *b)
{
	json_write_object(w);
	json_put_cstr(w, "id", b->id);
	encode_rest(w, b);
	json_write_object_end(w);
}

void encode_sandbox(struct json_writer *w, const struct sandbox *b)
{
	json_write_object(w);
	json_put_cstr(w, "id", b->id);
	if (b->spec.image_uri) {
		json_write_key(w, "image");
		json_write_object(w);
		json_put_cstr(w, "uri", b->spec.image_uri);
		json_write_object_end(w);
	}
	if (b->spec.snapshot_id)
		json_put_cstr(w, "snapshotId", b->spec.snapshot_id);
	encode_rest(w, b);
	json_write_object_end(w);
}
