/*
 * execd/isolated_spec.c - the creation body of isolated sessions.
 *
 * Paths are resolved to what they really name before they are compared with the allow-list: a
 * symlink cannot lead a writable mount out of it.
 */
#include "execd/isolated_spec.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "execd/app.h"
#include "execd/paths.h"

#define SPEC_MEMORY    ((size_t)1 << 20)
#define IDLE_DEFAULT_S 1800
#define IDLE_MAX_S     ((int64_t)366 * 24 * 3600)

const char *const isolated_mode_name[ISOLATED_MODES_] = {
	[ISOLATED_RW] = "rw", [ISOLATED_OVERLAY] = "overlay", [ISOLATED_RO] = "ro"};

/* What the strict profile keeps from a session unless the client says which keys itself. */
static const char *const secret_keys[] = {
	"*_API_KEY", "*_TOKEN",	 "*_SECRET", "*_PASSWORD", "AWS_*",
	"ALI_*",     "ALIYUN_*", "K8S_*",    "KUBE_*",
};

/* One of the words of a table, by its index. */
static int parse_word(const struct json *v, const char *key, const char *const *words, size_t n,
		      size_t *ret, struct err *e)
{
	struct view text = VIEW_NONE;
	int r = json_field_string(v, key, &text, e);

	if (r <= 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (view_is(text, words[i])) {
			*ret = i;
			return 1;
		}
	return err_set(e, -EINVAL, "'%s' is '" VIEW_FMT "', which is not one of its values", key,
		       VIEW_ARG(view_first(text, 32)));
}

static int keep_text(struct isolated_spec *s, struct view text, const char **ret, struct err *e)
{
	if (text.len == 0 || view_has(text, '\0'))
		return err_set(e, -EINVAL, "a path is empty or holds a NUL byte");
	*ret = arena_str(&s->memory, text);
	return *ret ? 0 : err_set(e, -E2BIG, "the body asks for too much");
}

static int parse_workspace(struct isolated_spec *s, const struct json *v, struct err *e)
{
	const struct json *w = NULL;
	struct view path = VIEW_NONE;
	size_t mode = ISOLATED_OVERLAY;

	if (json_field_object(v, "workspace", &w, e) < 0)
		return e->code;
	if (json_field_string(w, "path", &path, e) < 0)
		return err_ctx(e, "workspace");
	if (path.len == 0)
		return err_set(e, -EINVAL, "'workspace.path' is required");
	if (parse_word(w, "mode", isolated_mode_name, ISOLATED_MODES_, &mode, e) < 0)
		return err_ctx(e, "workspace");
	s->mode = (enum isolated_mode)mode;
	return keep_text(s, path, &s->workspace, e);
}

static int parse_writable(struct isolated_spec *s, const struct json *v, struct err *e)
{
	const struct json *list = NULL;

	if (json_field_array(v, "extra_writable", &list, e) < 0)
		return e->code;
	if (json_len(list) > ISOLATED_MAX_PATHS)
		return err_set(e, -EINVAL, "'extra_writable' has too many paths");
	for (size_t i = 0; i < json_len(list); i++) {
		struct view path;

		if (!json_str(json_at(list, i), &path))
			return err_set(e, -EINVAL, "'extra_writable' must be a list of strings");
		if (keep_text(s, path, &s->writable[i], e) < 0)
			return err_ctx(e, "extra_writable");
		s->writable_n = i + 1;
	}
	return 0;
}

static int parse_bind(struct isolated_spec *s, const struct json *v, struct isolated_bind *ret,
		      struct err *e)
{
	struct view source = VIEW_NONE, dest = VIEW_NONE;

	if (json_kind(v) != JSON_OBJECT)
		return err_set(e, -EINVAL, "must be a list of objects");
	if (json_field_string(v, "source", &source, e) < 0 ||
	    json_field_string(v, "dest", &dest, e) < 0 ||
	    json_field_bool(v, "readonly", &ret->readonly, e) < 0)
		return e->code;
	if (source.len == 0)
		return err_set(e, -EINVAL, "'source' is required");
	if (keep_text(s, source, &ret->source, e) < 0)
		return e->code;
	return keep_text(s, dest.len > 0 ? dest : source, &ret->dest, e);
}

static int parse_binds(struct isolated_spec *s, const struct json *v, struct err *e)
{
	const struct json *list = NULL;

	if (json_field_array(v, "binds", &list, e) < 0)
		return e->code;
	if (json_len(list) > ISOLATED_MAX_PATHS)
		return err_set(e, -EINVAL, "'binds' has too many entries");
	for (size_t i = 0; i < json_len(list); i++) {
		if (parse_bind(s, json_at(list, i), &s->binds[i], e) < 0)
			return err_ctx(e, "binds");
		s->binds_n = i + 1;
	}
	return 0;
}

static int parse_env(struct isolated_spec *s, const struct json *v, struct err *e)
{
	static const char *const modes[] = {"deny", "allow"};
	const struct json *env = NULL, *keys = NULL;
	size_t mode = 0;
	int r = json_field_object(v, "env_passthrough", &env, e);

	if (r > 0)
		r = parse_word(env, "mode", modes, ARRAY_LEN(modes), &mode, e);
	if (r >= 0 && env)
		r = json_field_array(env, "keys", &keys, e);
	if (r < 0)
		return err_ctx(e, "env_passthrough");
	s->env_allow = mode == 1;
	if (json_len(keys) > ISOLATED_MAX_KEYS)
		return err_set(e, -EINVAL, "'env_passthrough.keys' has too many entries");
	for (size_t i = 0; i < json_len(keys); i++) {
		struct view key;

		if (!json_str(json_at(keys, i), &key) || view_has(key, '\0'))
			return err_set(e, -EINVAL,
				       "'env_passthrough.keys' must be a list of names");
		s->env_keys[i] = arena_str(&s->memory, key);
		if (!s->env_keys[i])
			return err_set(e, -E2BIG, "the body asks for too much");
		s->env_keys_n = i + 1;
	}
	/* Nothing was said about the environment: a strict session sees no secrets. */
	if (!env && !s->balanced)
		for (size_t i = 0; i < ARRAY_LEN(secret_keys); i++)
			s->env_keys[s->env_keys_n++] = secret_keys[i];
	return 0;
}

static int parse_ids(struct isolated_spec *s, const struct json *v, struct err *e)
{
	static const char *const modes[] = {"setpriv", "userns"};
	int64_t uid = 0, gid = 0;
	size_t mode = 0;
	int has_uid = json_field_int(v, "uid", 0, UINT32_MAX - 1, &uid, e);
	int has_gid = has_uid < 0 ? has_uid : json_field_int(v, "gid", 0, UINT32_MAX - 1, &gid, e);

	if (has_gid < 0)
		return has_gid;
	if (has_gid && !has_uid)
		return err_set(e, -EINVAL, "'gid' needs 'uid'");
	if (parse_word(v, "uid_mode", modes, ARRAY_LEN(modes), &mode, e) < 0)
		return e->code;
	s->has_uid = has_uid > 0;
	s->has_gid = has_gid > 0;
	s->uid = s->has_uid ? (uid_t)uid : geteuid();
	s->gid = s->has_gid ? (gid_t)gid : s->has_uid ? (gid_t)uid : getegid();
	s->userns = mode == 1;
	return 0;
}

static int parse_all(struct isolated_spec *s, const struct json *v, struct err *e)
{
	static const char *const profiles[] = {"strict", "balanced"};
	size_t profile = 0;
	int r;

	if (json_kind(v) != JSON_OBJECT)
		return err_set(e, -EINVAL, "the body must be a JSON object");
	r = parse_word(v, "profile", profiles, ARRAY_LEN(profiles), &profile, e);
	s->balanced = profile == 1;
	s->share_net = true;
	s->idle_s = IDLE_DEFAULT_S;
	if (r >= 0)
		r = json_field_bool(v, "share_net", &s->share_net, e);
	if (r >= 0)
		r = json_field_int(v, "idle_timeout_seconds", 0, IDLE_MAX_S, &s->idle_s, e);
	if (r >= 0)
		r = parse_ids(s, v, e);
	if (r >= 0)
		r = parse_env(s, v, e);
	if (r >= 0)
		r = parse_workspace(s, v, e);
	if (r >= 0)
		r = parse_writable(s, v, e);
	if (r >= 0)
		r = parse_binds(s, v, e);
	return r < 0 ? r : 0;
}

int isolated_spec_parse(struct isolated_spec *s, struct view body, struct err *e)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	int r;

	*s = (struct isolated_spec){0};
	arena_init(&s->memory, SPEC_MEMORY);
	r = json_parse(body, JSON_FIRST_VALUE, &v, e);
	return r < 0 ? r : parse_all(s, v, e);
}

/* Replaces a path as it was written by what it really names. */
static int resolve(struct isolated_spec *s, struct app *app, const char **path, struct err *e)
{
	char real[PATH_MAX];
	const char *whole;
	int r = paths_resolve(app, &s->memory, view_of(*path), /* env= */ NULL, &whole, e);

	if (r < 0)
		return r;
	if (!realpath(whole, real))
		return err_set(e, -EINVAL, "'%s': %m", whole);
	*path = arena_strndup(&s->memory, real, strlen(real));
	return *path ? 0 : err_set(e, -E2BIG, "the body asks for too much");
}

static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	while (n > 0 && dir[n - 1] == '/')
		n--;
	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static int check_allowed(const char *path, const struct strv *allowed, struct err *e)
{
	for (size_t i = 0; i < allowed->len; i++)
		if (is_below(path, allowed->v[i]))
			return 0;
	return err_set(e, -EINVAL, "'%s' is not below a directory that sessions may write to",
		       path);
}

static int resolve_workspace(struct isolated_spec *s, struct app *app, struct err *e)
{
	const char *whole;

	if (paths_resolve(app, &s->memory, view_of(s->workspace), /* env= */ NULL, &whole, e) < 0)
		return e->code;
	if (access(whole, F_OK) < 0) {
		if (paths_make_dirs(whole, e) < 0)
			return e->code;
		/* A fresh one belongs to whom it is for. */
		if (s->has_uid && !s->userns)
			(void)!chown(whole, s->uid, s->gid);
	}
	if (resolve(s, app, &s->workspace, e) < 0)
		return e->code;
	if (strcmp(s->workspace, "/") == 0)
		return err_set(e, -EINVAL, "it cannot be '/'");
	return paths_check_dir(s->workspace, e);
}

static int resolve_bind(struct isolated_spec *s, struct app *app, struct isolated_bind *b,
			const struct strv *allowed, struct err *e)
{
	struct stat source, dest;

	if (resolve(s, app, &b->source, e) < 0 || resolve(s, app, &b->dest, e) < 0)
		return e->code;
	if (!b->readonly && check_allowed(b->source, allowed, e) < 0)
		return e->code;
	if (stat(b->source, &source) < 0 || stat(b->dest, &dest) < 0 ||
	    S_ISDIR(source.st_mode) != S_ISDIR(dest.st_mode))
		return err_set(e, -EINVAL, "'%s' cannot be bound to '%s'", b->source, b->dest);
	return 0;
}

int isolated_spec_resolve(struct isolated_spec *s, struct app *app, const struct strv *allowed,
			  struct err *e)
{
	if (resolve_workspace(s, app, e) < 0)
		return err_ctx(e, "workspace");
	for (size_t i = 0; i < s->writable_n; i++)
		if (resolve(s, app, &s->writable[i], e) < 0 ||
		    check_allowed(s->writable[i], allowed, e) < 0)
			return err_ctx(e, "extra_writable");
	for (size_t i = 0; i < s->binds_n; i++)
		if (resolve_bind(s, app, &s->binds[i], allowed, e) < 0)
			return err_ctx(e, "binds");
	return 0;
}

void isolated_spec_done(struct isolated_spec *s)
{
	arena_done(&s->memory);
}

static void write_paths(const struct isolated_spec *s, struct json_writer *w)
{
	json_write_key(w, "extra_writable");
	json_write_array(w);
	for (size_t i = 0; i < s->writable_n; i++)
		json_write_cstr(w, s->writable[i]);
	json_write_array_end(w);
	json_write_key(w, "binds");
	json_write_array(w);
	for (size_t i = 0; i < s->binds_n; i++) {
		json_write_object(w);
		json_put_cstr(w, "source", s->binds[i].source);
		json_put_cstr(w, "dest", s->binds[i].dest);
		json_put_bool(w, "readonly", s->binds[i].readonly);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

void isolated_spec_write(const struct isolated_spec *s, struct json_writer *w)
{
	json_put_cstr(w, "profile", s->balanced ? "balanced" : "strict");
	json_write_key(w, "workspace");
	json_write_object(w);
	json_put_cstr(w, "path", s->workspace);
	json_put_cstr(w, "mode", isolated_mode_name[s->mode]);
	json_write_object_end(w);
	write_paths(s, w);
	json_put_bool(w, "share_net", s->share_net);
	json_write_key(w, "env_passthrough");
	json_write_object(w);
	json_put_cstr(w, "mode", s->env_allow ? "allow" : "deny");
	json_write_key(w, "keys");
	json_write_array(w);
	for (size_t i = 0; i < s->env_keys_n; i++)
		json_write_cstr(w, s->env_keys[i]);
	json_write_array_end(w);
	json_write_object_end(w);
	if (s->has_uid)
		json_put_int(w, "uid", s->uid);
	if (s->has_gid)
		json_put_int(w, "gid", s->gid);
	json_put_cstr(w, "uid_mode", s->userns ? "userns" : "setpriv");
	json_put_int(w, "idle_timeout_seconds", s->idle_s);
}

static char upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool same_text(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (upper(a[i]) != upper(b[i]))
			return false;
	return true;
}

/* A key names a variable; a '*' at either end stands for anything there.  Case is ignored. */
static bool key_matches(const char *key, struct view name)
{
	size_t n = strlen(key);
	bool head = n > 0 && key[0] == '*', tail = n > 1 && key[n - 1] == '*';
	size_t len = n - head - tail;

	for (size_t at = 0; at + len <= name.len; at++)
		if ((at == 0 || head) && (at + len == name.len || tail) &&
		    same_text(key + head, name.p + at, len))
			return true;
	return false;
}

void isolated_spec_env(const struct isolated_spec *s, const struct strv *from, struct strv *ret)
{
	for (size_t i = 0; i < from->len; i++) {
		struct view name = view_of(from->v[i]);
		bool listed = false;

		name = view_first(name, view_find(name, '='));
		for (size_t k = 0; k < s->env_keys_n && !listed; k++)
			listed = key_matches(s->env_keys[k], name);
		if (listed == s->env_allow)
			strv_add(ret, from->v[i]);
	}
}
