/*
 * codec/docker_config.c - "auths" by registry, however its key is spelled.
 */
#include "codec/docker_config.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/base64.h"
#include "codec/image_ref.h"
#include "codec/json.h"

#define SECRET_MAX 65536

/* "https://index.docker.io/v1/" and "docker.io" mean the same registry. */
static struct view key_host(struct view key)
{
	if (view_starts(key, VIEW("https://")))
		key = view_skip(key, 8);
	else if (view_starts(key, VIEW("http://")))
		key = view_skip(key, 7);
	key = view_first(key, view_find(key, '/'));
	if (view_iis(key, "index.docker.io") || view_iis(key, "registry-1.docker.io"))
		return VIEW(IMAGE_REF_HUB);
	return key;
}

static const struct json *find_entry(const struct json *object, struct view registry)
{
	const struct json *value;
	struct view key;
	void *it = NULL;

	while (json_next(object, &it, &key, &value))
		if (view_ieq(key_host(key), registry))
			return value;
	return NULL;
}

/* base64 of "user:password"; Docker pads passwords with NULs at times. */
static int read_auth(struct view auth, struct arena *a, struct docker_auth *ret, struct err *e)
{
	char *plain = arena_alloc(a, SECRET_MAX);
	struct view text;
	ssize_t n;
	size_t colon;

	if (!plain)
		return err_set(e, -E2BIG, "config.json: the credentials are too large");
	n = base64_parse(auth, plain, SECRET_MAX);
	text = view_mem(plain, n > 0 ? (size_t)n : 0);
	while (text.len > 0 && text.p[text.len - 1] == '\0')
		text.len--;
	colon = view_find(text, ':');
	if (n < 0 || colon == text.len || view_has(text, '\0'))
		return err_set(e, -EINVAL,
			       "config.json: 'auth' must be the base64 of user:password");
	ret->username = view_first(text, colon);
	ret->password = view_skip(text, colon + 1);
	return 0;
}

static int copy_field(const struct json *v, const char *key, struct arena *a, struct view *ret,
		      struct err *e)
{
	struct view text;
	int r = json_field_string(v, key, &text, e);

	if (r < 0)
		return err_ctx(e, "config.json");
	if (r > 0 && arena_view(a, text, ret) < 0)
		return err_set(e, -E2BIG, "config.json: '%s' is too large", key);
	return 0;
}

static int read_entry(const struct json *entry, struct arena *a, struct docker_auth *ret,
		      struct err *e)
{
	struct view auth = VIEW_NONE;
	int r = copy_field(entry, "auth", a, &auth, e);

	if (r == 0)
		r = copy_field(entry, "username", a, &ret->username, e);
	if (r == 0)
		r = copy_field(entry, "password", a, &ret->password, e);
	if (r == 0)
		r = copy_field(entry, "identitytoken", a, &ret->identity_token, e);
	if (r == 0 && auth.len > 0)
		r = read_auth(auth, a, ret, e);
	if (r < 0)
		return r;
	return ret->username.len > 0 || ret->identity_token.len > 0;
}

/* A store for everything counts only for registries that somebody logged in to. */
static int find_helper(const struct json *v, struct view registry, bool listed, struct arena *a,
		       struct docker_auth *ret, struct err *e)
{
	const struct json *helpers = NULL, *named;
	struct view name;
	int r = json_field_object(v, "credHelpers", &helpers, e);

	if (r < 0)
		return err_ctx(e, "config.json");
	named = find_entry(helpers, registry);
	if (named && json_str(named, &name))
		return arena_view(a, name, &ret->helper) < 0
			       ? err_set(e, -E2BIG, "config.json: a helper's name is too long")
			       : 0;
	return listed ? copy_field(v, "credsStore", a, &ret->helper, e) : 0;
}

int docker_config_find(struct view text, struct view registry, struct arena *a,
		       struct docker_auth *ret, struct err *e)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	const struct json *auths = NULL, *entry;
	struct docker_auth found = {0};
	int r = json_parse(text, 0, &v, e);

	if (r == 0 && json_kind(v) != JSON_OBJECT)
		r = err_set(e, -EINVAL, "it must be an object");
	if (r == 0)
		r = json_field_object(v, "auths", &auths, e);
	if (r < 0)
		return err_ctx(e, "config.json");
	entry = find_entry(auths, registry);
	r = entry ? read_entry(entry, a, &found, e) : 0;
	if (r == 0)
		r = find_helper(v, registry, entry != NULL, a, &found, e);
	if (r >= 0)
		*ret = found;
	return r;
}
