/*
 * server/request_ossfs.c - buckets: names, endpoints, keys, and options that a client may choose.
 *
 * The program that mounts a bucket runs with rights over the host.  Its options could name files of
 * the host, so that only those pass which cannot: a list of names, none of which takes a path.
 */
#include "server/request_ossfs.h"

#include <string.h>

#include "base/mem.h"
#include "base/view.h"
#include "codec/json.h"
#include "server/failure.h"
#include "server/request_fields.h"
#include "server/volume.h"

#define BUCKET_MIN   3
#define BUCKET_MAX   63
#define ENDPOINT_MAX 255
#define KEY_MAX	     256
#define OPTIONS_MAX  32

static const char *const options[] = {
	"allow_other",
	"attr_timeout",
	"connect_timeout",
	"enable_noobj_cache",
	"entry_timeout",
	"list_object_max_keys",
	"max_dirty_data",
	"max_stat_cache_size",
	"multipart_size",
	"multireq_max",
	"negative_timeout",
	"no_check_certificate",
	"noxmlns",
	"parallel_count",
	"readwrite_timeout",
	"region",
	"retries",
	"ro",
	"sigv2",
	"sigv4",
	"stat_cache_expire",
	"storage_class",
	"umask",
	"use_path_request_style",
};

static bool printable(struct view text, const char *beyond)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = text.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    !strchr(beyond, c))
			return false;
	}
	return true;
}

static int read_where(const struct json *ossfs, struct volume *out, struct failure *f)
{
	struct view bucket = VIEW_NONE, endpoint = VIEW_NONE;

	if (request_string(ossfs, "bucket", &bucket, f) < 0 ||
	    request_string(ossfs, "endpoint", &endpoint, f) < 0)
		return -1;
	if (bucket.len < BUCKET_MIN || bucket.len > BUCKET_MAX)
		return failure_set(
			f, 422, "VOLUME::INVALID_OSSFS_BUCKET",
			"volume '%s': ossfs.bucket must be given, of %d to %d characters",
			out->name, BUCKET_MIN, BUCKET_MAX);
	if (!printable(bucket, "-.") || bucket.p[0] == '-' || bucket.p[0] == '.')
		return failure_set(f, 400, "VOLUME::INVALID_OSSFS_BUCKET",
				   "volume '%s': ossfs.bucket must be of letters, digits, '-' "
				   "and '.'",
				   out->name);
	if (endpoint.len == 0)
		return failure_set(f, 422, "VOLUME::INVALID_OSSFS_ENDPOINT",
				   "volume '%s': ossfs.endpoint must be given", out->name);
	endpoint = view_trim(endpoint);
	if (endpoint.len == 0 || endpoint.len > ENDPOINT_MAX || !printable(endpoint, "-.:/_[]") ||
	    endpoint.p[0] == '-')
		return failure_set(f, 400, "VOLUME::INVALID_OSSFS_ENDPOINT",
				   "volume '%s': ossfs.endpoint must be a host name, with a port "
				   "and http:// or https:// if need be",
				   out->name);
	out->bucket.bucket = mem_strndup(bucket.p, bucket.len);
	out->bucket.endpoint = mem_strndup(endpoint.p, endpoint.len);
	return 0;
}

static int read_version(const struct json *ossfs, struct volume *out, struct failure *f)
{
	struct view version = VIEW("2.0");

	if (request_string(ossfs, "version", &version, f) < 0)
		return -1;
	if (!view_is(version, "1.0") && !view_is(version, "2.0"))
		return failure_set(f, 422, "VOLUME::INVALID_OSSFS_VERSION",
				   "volume '%s': ossfs.version must be \"1.0\" or \"2.0\"",
				   out->name);
	out->bucket.version = mem_strndup(version.p, version.len);
	return 0;
}

static bool option_known(struct view option)
{
	struct view name = view_first(option, view_find(option, '='));
	struct view value = view_skip(option, MIN(name.len + 1, option.len));

	if (!printable(value, "-._"))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (view_is(name, options[i]))
			return true;
	return false;
}

static int read_options(const struct json *ossfs, struct volume *out, struct failure *f)
{
	static const char code[] = "VOLUME::INVALID_OSSFS_OPTION";
	struct strv *words = &out->bucket.options;
	const struct json *array = NULL;

	if (request_array(ossfs, "options", &array, f) < 0)
		return -1;
	if (array && request_words(array, "ossfs.options", OPTIONS_MAX, words, f) < 0)
		return -1;
	for (size_t i = 0; i < words->len; i++) {
		struct view option = view_trim(view_of(words->v[i]));

		if (option.len == 0 || option.p[0] == '-')
			return failure_set(f, 400, code,
					   "volume '%s': ossfs.options are written without '-' in "
					   "front, and none is empty",
					   out->name);
		if (!option_known(option))
			return failure_set(f, 400, code,
					   "volume '%s': the option '%.60s' is not one that a "
					   "request may choose",
					   out->name, words->v[i]);
	}
	return 0;
}

static int read_keys(const struct json *ossfs, struct volume *out, struct failure *f)
{
	static const char code[] = "VOLUME::INVALID_OSSFS_CREDENTIALS";
	struct view id = VIEW_NONE, secret = VIEW_NONE;

	if (request_string(ossfs, "accessKeyId", &id, f) < 0 ||
	    request_string(ossfs, "accessKeySecret", &secret, f) < 0)
		return -1;
	if ((id.p && id.len == 0) || (secret.p && secret.len == 0))
		return failure_set(f, 422, code,
				   "volume '%s': ossfs.accessKeyId and accessKeySecret must not be "
				   "empty",
				   out->name);
	if (!id.p || !secret.p)
		return failure_set(
			f, 400, code,
			"volume '%s': ossfs.accessKeyId and accessKeySecret must be given",
			out->name);
	if (id.len > KEY_MAX || secret.len > KEY_MAX || !printable(id, "-._+/=") ||
	    !printable(secret, "-._+/="))
		return failure_set(f, 400, code,
				   "volume '%s': the ossfs keys must be of letters, digits and "
				   "-._+/=, at most %d",
				   out->name, KEY_MAX);
	out->bucket.key_id = mem_strndup(id.p, id.len);
	out->bucket.key_secret = mem_strndup(secret.p, secret.len);
	return 0;
}

int request_ossfs(const struct json *ossfs, struct volume *out, struct failure *f)
{
	out->kind = VOLUME_OSSFS;
	if (read_where(ossfs, out, f) < 0 || read_version(ossfs, out, f) < 0 ||
	    read_options(ossfs, out, f) < 0)
		return -1;
	return read_keys(ossfs, out, f);
}
