/*
 * server/request_volumes.c - the checks of volumes, in the order in which they are reported.
 *
 * As everywhere: a wrong shape is 422, a shape that asks for something impossible is 400.
 */
#include "server/request_volumes.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/strv.h"
#include "codec/json.h"
#include "server/failure.h"
#include "server/request_fields.h"
#include "server/request_ossfs.h"
#include "server/volume.h"

#define NAME_MAX_LEN   63
#define NAME_BYTES_MAX 255
#define MODES_MAX      16

static int shown(struct view text)
{
	return (int)MIN(text.len, (size_t)80);
}

bool request_volume_name_valid(struct view name, size_t max)
{
	if (name.len == 0 || name.len > max || name.p[0] == '-' || name.p[name.len - 1] == '-')
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-')
			return false;
	}
	return true;
}

/* ---- paths ---- */

static bool has_component(struct view path, const char *name)
{
	struct view part;

	while (view_split(&path, '/', &part))
		if (view_is(part, name))
			return true;
	return false;
}

/* No file system takes a longer one. */
static bool has_long_component(struct view path)
{
	struct view part;

	while (view_split(&path, '/', &part))
		if (part.len > NAME_BYTES_MAX)
			return true;
	return false;
}

static bool unusable(struct view path)
{
	return path.len > REQUEST_VOLUME_PATH_MAX || has_component(path, "..") ||
	       has_long_component(path);
}

/* "/a//b/./c/" is "/a/b/c", or "a/b/c" with nothing in front.  The caller owns the text. */
static char *clean_path(struct view path, const char *front)
{
	char *out = mem_alloc(path.len + 2), *end = out;
	struct view part;

	while (view_split(&path, '/', &part)) {
		if (part.len == 0 || view_is(part, "."))
			continue;
		if (end != out || *front)
			*end++ = '/';
		memcpy(end, part.p, part.len);
		end += part.len;
	}
	if (end == out && *front)
		*end++ = '/';
	*end = '\0';
	return out;
}

/* What a sandbox needs in its own shape, or the server for itself. */
static const char *const reserved[] = {"/proc", "/sys", "/dev", "/opt/opensandbox"};

static bool is_below(const char *path, const char *directory)
{
	size_t n = strlen(directory);

	return strncmp(path, directory, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static int read_mount_path(const struct json *v, struct volume *out, struct failure *f)
{
	static const char code[] = "VOLUME::INVALID_MOUNT_PATH";
	struct view path = VIEW_NONE;

	if (request_string(v, "mountPath", &path, f) < 0)
		return -1;
	if (!path.p || path.len == 0 || path.p[0] != '/')
		return failure_set(f, 422, code,
				   "volume '%s': mountPath must be given and begin with '/'",
				   out->name);
	if (unusable(path))
		return failure_set(f, 400, code,
				   "volume '%s': mountPath must have no '..' and at most %d bytes",
				   out->name, REQUEST_VOLUME_PATH_MAX);
	out->mount_path = clean_path(path, "/");
	if (strcmp(out->mount_path, "/") == 0)
		return failure_set(f, 400, code, "volume '%s': mountPath must not be '/'",
				   out->name);
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
		if (is_below(out->mount_path, reserved[i]))
			return failure_set(f, 400, code,
					   "volume '%s': mountPath must not lie in %s, which the "
					   "sandbox itself needs",
					   out->name, reserved[i]);
	return 0;
}

static int read_sub_path(const struct json *v, struct volume *out, struct failure *f)
{
	struct view path = VIEW_NONE;

	if (request_string(v, "subPath", &path, f) < 0)
		return -1;
	if (unusable(path) || (path.len && path.p[0] == '/'))
		return failure_set(f, 400, "VOLUME::INVALID_SUB_PATH",
				   "volume '%s': subPath must be relative, have no '..' and at "
				   "most %d bytes",
				   out->name, REQUEST_VOLUME_PATH_MAX);
	out->below = clean_path(path, "");
	return 0;
}

/* ---- host ---- */

/* The rest of `path` behind `directory`, by components. */
static bool cut_directory(struct view path, struct view directory, struct view *ret_rest)
{
	while (directory.len > 0 && directory.p[directory.len - 1] == '/')
		directory.len--;
	if (!view_starts(path, directory))
		return false;
	path = view_skip(path, directory.len);
	if (path.len > 0 && path.p[0] != '/')
		return false;
	*ret_rest = path.len ? view_skip(path, 1) : path;
	return true;
}

/* The outermost of those that `path` lies in: who may write there may put a link to anywhere at an
 * inner one, which is then judged as every other link below. */
static bool outermost(struct view path, const struct strv *allowed, size_t *ret,
		      struct view *ret_rest)
{
	bool found = false;

	for (size_t i = 0; i < allowed->len; i++) {
		struct view rest = VIEW_NONE;

		if (!cut_directory(path, view_of(allowed->v[i]), &rest) ||
		    (found && rest.len <= ret_rest->len))
			continue;
		found = true;
		*ret = i;
		*ret_rest = rest;
	}
	return found;
}

static int find_allowed(struct view path, const struct strv *allowed, struct volume *out,
			struct failure *f)
{
	char text[2 * REQUEST_VOLUME_PATH_MAX + 2];
	struct view rest = VIEW_NONE;
	char *joined;
	size_t i;

	if (!outermost(path, allowed, &i, &rest))
		return failure_set(f, 400, "VOLUME::HOST_PATH_NOT_ALLOWED",
				   "volume '%s': '%.*s' does not lie in any of the directories "
				   "that storage.allowed_host_paths allows",
				   out->name, shown(path), path.p);
	snprintf(text, sizeof(text), "%.*s/%s", (int)rest.len, rest.p ? rest.p : "", out->below);
	joined = clean_path(view_of(text), "");
	free(out->below);
	out->below = joined;
	out->number = i;
	if (strlen(joined) <= REQUEST_VOLUME_PATH_MAX)
		return 0;
	return failure_set(f, 400, "VOLUME::INVALID_HOST_PATH",
			   "volume '%s': host.path and subPath are too long together", out->name);
}

static bool looks_absolute(struct view path)
{
	if (path.len > 0 && path.p[0] == '/')
		return true;
	return path.len > 2 && path.p[1] == ':' && (path.p[2] == '/' || path.p[2] == '\\') &&
	       ((path.p[0] | 0x20) >= 'a' && (path.p[0] | 0x20) <= 'z');
}

static int read_host(const struct json *host, const struct strv *allowed, struct volume *out,
		     struct failure *f)
{
	static const char code[] = "VOLUME::INVALID_HOST_PATH";
	struct view path = VIEW_NONE;

	if (request_string(host, "path", &path, f) < 0)
		return -1;
	if (!looks_absolute(path))
		return failure_set(f, 422, code,
				   "volume '%s': host.path must be given and be absolute",
				   out->name);
	if (unusable(path) || has_component(path, "."))
		return failure_set(f, 400, code,
				   "volume '%s': host.path must have no '.' or '..' and at most "
				   "%d bytes",
				   out->name, REQUEST_VOLUME_PATH_MAX);
	for (size_t i = 1; i < path.len; i++)
		if (path.p[i] == '/' && (path.p[i - 1] == '/' || i + 1 == path.len))
			return failure_set(f, 400, code,
					   "volume '%s': host.path has a '/' too many", out->name);
	out->kind = VOLUME_HOST;
	out->path = mem_strndup(path.p, path.len);
	return find_allowed(path, allowed, out, f);
}

/* ---- named ---- */

/* "10Gi", "1.5Ti", "100": a hint for clusters. */
static bool is_size(struct view text)
{
	static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
	size_t digits = 0, i = 0;

	while (i < text.len && text.p[i] >= '0' && text.p[i] <= '9')
		i++, digits++;
	if (digits == 0)
		return false;
	if (i < text.len && text.p[i] == '.') {
		for (i++, digits = 0; i < text.len && text.p[i] >= '0' && text.p[i] <= '9'; i++)
			digits++;
		if (digits == 0)
			return false;
	}
	for (size_t u = 0; u < ARRAY_LEN(units); u++)
		if (view_is(view_skip(text, i), units[u]))
			return true;
	return false;
}

/* What a cluster would need to make the volume: checked, of no use here. */
static int check_hints(const struct json *pvc, const struct volume *out, struct failure *f)
{
	struct view class = VIEW_NONE, size = VIEW_NONE;
	const struct json *modes = NULL;
	struct strv words = STRV_INIT;
	int r = 0;

	if (request_string(pvc, "storageClass", &class, f) < 0 ||
	    request_string(pvc, "storage", &size, f) < 0 ||
	    request_array(pvc, "accessModes", &modes, f) < 0)
		return -1;
	if (modes)
		r = request_words(modes, "pvc.accessModes", MODES_MAX, &words, f);
	strv_done(&words);
	if (r == 0 && size.p && !is_size(size))
		return failure_set(f, 422, "VOLUME::INVALID_BACKEND",
				   "volume '%s': pvc.storage must be a size like \"10Gi\"",
				   out->name);
	return r;
}

static int read_pvc(const struct json *pvc, struct volume *out, struct failure *f)
{
	struct view claim = VIEW_NONE;
	bool create = true;

	if (request_string(pvc, "claimName", &claim, f) < 0 ||
	    request_bool(pvc, "createIfNotExists", &create, f) < 0 ||
	    request_bool(pvc, "deleteOnSandboxTermination", &out->remove_after, f) < 0 ||
	    check_hints(pvc, out, f) < 0)
		return -1;
	if (!request_volume_name_valid(claim, REQUEST_CLAIM_MAX))
		return failure_set(f, 422, "VOLUME::INVALID_PVC_NAME",
				   "volume '%s': pvc.claimName must be given: lower-case letters, "
				   "digits and '-', at most %d",
				   out->name, REQUEST_CLAIM_MAX);
	out->kind = VOLUME_NAMED;
	out->must_exist = !create;
	out->claim = mem_strndup(claim.p, claim.len);
	return 0;
}

/* ---- one, and all ---- */

static int read_backend(const struct json *v, const struct strv *allowed, struct volume *out,
			struct failure *f)
{
	const struct json *host = NULL, *pvc = NULL, *ossfs = NULL;

	if (request_object(v, "host", &host, f) < 0 || request_object(v, "pvc", &pvc, f) < 0 ||
	    request_object(v, "ossfs", &ossfs, f) < 0)
		return -1;
	if (!!host + !!pvc + !!ossfs != 1)
		return failure_set(f, 422, "VOLUME::INVALID_BACKEND",
				   "volume '%s': exactly one of host, pvc and ossfs must be given",
				   out->name);
	if (host)
		return read_host(host, allowed, out, f);
	return pvc ? read_pvc(pvc, out, f) : request_ossfs(ossfs, out, f);
}

static int read_one(const struct json *v, const struct strv *allowed, struct volume *out,
		    struct failure *f)
{
	struct view name = VIEW_NONE;

	if (json_kind(v) != JSON_OBJECT)
		return failure_set(f, 422, REQUEST_CODE, "volumes must hold objects, not %s",
				   json_kind_name(json_kind(v)));
	if (request_string(v, "name", &name, f) < 0)
		return -1;
	if (!request_volume_name_valid(name, NAME_MAX_LEN))
		return failure_set(f, 422, "VOLUME::INVALID_NAME",
				   "volumes: every one needs a name of lower-case letters, digits "
				   "and '-', at most %d; '%.*s' is none",
				   NAME_MAX_LEN, shown(name), name.p ? name.p : "");
	out->name = mem_strndup(name.p, name.len);
	if (request_bool(v, "readOnly", &out->read_only, f) < 0 || read_mount_path(v, out, f) < 0 ||
	    read_sub_path(v, out, f) < 0)
		return -1;
	return read_backend(v, allowed, out, f);
}

static int check_alone(const struct volumes_list *l, const struct volume *v, struct failure *f)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct volume *other = &l->v[i];

		if (other == v)
			continue;
		if (strcmp(other->name, v->name) == 0)
			return failure_set(f, 400, "VOLUME::DUPLICATE_NAME",
					   "volumes: the name '%s' is given twice", v->name);
		if (strcmp(other->mount_path, v->mount_path) == 0)
			return failure_set(f, 400, "VOLUME::INVALID_MOUNT_PATH",
					   "volumes '%s' and '%s' have the same mountPath",
					   other->name, v->name);
	}
	return 0;
}

static int read_all(const struct json *array, const struct strv *allowed, struct volumes_list *ret,
		    struct failure *f)
{
	for (size_t i = 0; i < json_len(array); i++) {
		struct volume *v = volumes_list_add(ret);

		if (read_one(json_at(array, i), allowed, v, f) < 0 || check_alone(ret, v, f) < 0)
			return -1;
	}
	return 0;
}

int request_volumes(const struct json *body, const struct strv *allowed, struct volumes_list *ret,
		    struct failure *f)
{
	struct volumes_list list = {0};
	const struct json *array = NULL;

	if (request_array(body, "volumes", &array, f) < 0)
		return -1;
	if (json_len(array) > REQUEST_VOLUMES_MAX)
		return failure_set(f, 422, REQUEST_CODE, "volumes: at most %d can be mounted",
				   REQUEST_VOLUMES_MAX);
	if (read_all(array, allowed, &list, f) < 0) {
		volumes_list_done(&list);
		return -1;
	}
	*ret = list;
	return 0;
}
