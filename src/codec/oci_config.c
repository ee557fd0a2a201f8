/*
 * codec/oci_config.c - the configuration of an image: its layers' contents, and how to start it.
 */
#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/json.h"
#include "codec/oci_image.h"

#define STRINGS_MAX 4096 /* of one list */

static int bad(struct err *e)
{
	e->code = -EBADMSG;
	return e->code;
}

static int out_of_room(struct err *e)
{
	return err_set(e, -EFBIG, "the configuration is too large");
}

static int copy_string(const struct json *v, const char *key, struct arena *a, struct view *ret,
		       struct err *e)
{
	struct view text;
	int r = json_field_string(v, key, &text, e);

	if (r <= 0)
		return r < 0 ? bad(e) : 0;
	return arena_view(a, text, ret) < 0 ? out_of_room(e) : 0;
}

static int make_list(const struct json *v, const char *key, struct arena *a,
		     struct oci_strings *ret, struct err *e)
{
	size_t n = json_len(v);

	if (n > STRINGS_MAX)
		return err_set(e, -EFBIG, "'%s' has %zu entries; %d is the limit", key, n,
			       STRINGS_MAX);
	ret->v = n > 0 ? arena_alloc(a, n * sizeof(*ret->v)) : NULL;
	return n > 0 && !ret->v ? out_of_room(e) : 0;
}

static int add_string(struct arena *a, struct view text, const char *key, struct oci_strings *to,
		      struct err *e)
{
	if (view_has(text, '\0'))
		return err_set(e, -EBADMSG, "'%s' must not contain a NUL character", key);
	return arena_view(a, text, &to->v[to->n++]) < 0 ? out_of_room(e) : 0;
}

static int copy_strings(const struct json *v, const char *key, struct arena *a,
			struct oci_strings *ret, struct err *e)
{
	const struct json *list = NULL;
	struct oci_strings found = {0};
	int r = json_field_array(v, key, &list, e);

	if (r <= 0)
		return r < 0 ? bad(e) : 0;
	r = make_list(list, key, a, &found, e);
	for (size_t i = 0; r == 0 && i < json_len(list); i++) {
		struct view text;

		if (!json_str(json_at(list, i), &text))
			return err_set(e, -EBADMSG, "'%s' must be strings", key);
		r = add_string(a, text, key, &found, e);
	}
	*ret = found;
	return r;
}

/* {"/data": {}} */
static int copy_keys(const struct json *v, const char *key, struct arena *a,
		     struct oci_strings *ret, struct err *e)
{
	const struct json *object = NULL, *value;
	struct oci_strings found = {0};
	struct view name;
	void *it = NULL;
	int r = json_field_object(v, key, &object, e);

	if (r <= 0)
		return r < 0 ? bad(e) : 0;
	r = make_list(object, key, a, &found, e);
	while (r == 0 && json_next(object, &it, &name, &value))
		r = add_string(a, name, key, &found, e);
	*ret = found;
	return r;
}

static int read_rootfs(const struct json *v, struct arena *a, struct oci_config *c, struct err *e)
{
	const struct json *rootfs = NULL, *ids = NULL;
	struct view type = VIEW_NONE;

	if (json_field_object(v, "rootfs", &rootfs, e) < 0 ||
	    json_field_string(rootfs, "type", &type, e) < 0 ||
	    json_field_array(rootfs, "diff_ids", &ids, e) < 0)
		return bad(e);
	if (!rootfs || !view_is(type, "layers"))
		return err_set(e, -EBADMSG, "the configuration has no rootfs of type 'layers'");
	c->diff_ids_n = json_len(ids);
	if (c->diff_ids_n > OCI_LAYERS_MAX)
		return err_set(e, -EFBIG, "the configuration has %zu layers; %d is the limit",
			       c->diff_ids_n, OCI_LAYERS_MAX);
	c->diff_ids = arena_alloc(a, MAX(c->diff_ids_n, (size_t)1) * sizeof(*c->diff_ids));
	if (!c->diff_ids)
		return out_of_room(e);
	for (size_t i = 0; i < c->diff_ids_n; i++) {
		struct view id;

		if (!json_str(json_at(ids, i), &id) || !image_ref_digest_valid(id))
			return err_set(e, -EBADMSG, "diff_ids must be sha256 digests");
		memcpy(c->diff_ids[i], id.p, id.len);
	}
	return 0;
}

static int read_start(const struct json *v, struct arena *a, struct oci_config *c, struct err *e)
{
	const struct json *config = NULL;
	int r;

	if (json_field_object(v, "config", &config, e) < 0)
		return bad(e);
	r = copy_strings(config, "Env", a, &c->env, e);
	if (r == 0)
		r = copy_strings(config, "Entrypoint", a, &c->entrypoint, e);
	if (r == 0)
		r = copy_strings(config, "Cmd", a, &c->cmd, e);
	if (r == 0)
		r = copy_string(config, "User", a, &c->user, e);
	if (r == 0)
		r = copy_string(config, "WorkingDir", a, &c->working_dir, e);
	if (r == 0)
		r = copy_string(config, "StopSignal", a, &c->stop_signal, e);
	if (r == 0)
		r = copy_keys(config, "Volumes", a, &c->volumes, e);
	return r;
}

int oci_config_parse(struct view text, struct arena *a, struct oci_config *ret, struct err *e)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct oci_config c = {0};
	int r;

	if (text.len > OCI_CONFIG_MAX)
		return err_set(e, -EFBIG, "the configuration is larger than %d bytes",
			       OCI_CONFIG_MAX);
	if (json_parse(text, 0, &v, e) < 0)
		return bad(e);
	if (json_kind(v) != JSON_OBJECT)
		return err_set(e, -EBADMSG, "a configuration must be an object");
	r = read_rootfs(v, a, &c, e);
	if (r == 0)
		r = copy_string(v, "os", a, &c.platform.os, e);
	if (r == 0)
		r = copy_string(v, "architecture", a, &c.platform.arch, e);
	if (r == 0)
		r = copy_string(v, "variant", a, &c.platform.variant, e);
	if (r == 0)
		r = read_start(v, a, &c, e);
	if (r == 0)
		*ret = c;
	return r;
}
