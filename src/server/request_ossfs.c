/*
 * server/request_ossfs.c - buckets: names, endpoints, keys, and options that a client may choose.
 *
 * The program that mounts a bucket runs with rights over the host: see codec/bucket_words.h.
 */
#include "server/request_ossfs.h"

#include "base/mem.h"
#include "base/view.h"
#include "codec/bucket_words.h"
#include "codec/json.h"
#include "server/failure.h"
#include "server/request_fields.h"
#include "server/volume.h"

#define OPTIONS_MAX 32

static int read_where(const struct json *ossfs, struct volume *out, struct failure *f)
{
	struct view bucket = VIEW_NONE, endpoint = VIEW_NONE;

	if (request_string(ossfs, "bucket", &bucket, f) < 0 ||
	    request_string(ossfs, "endpoint", &endpoint, f) < 0)
		return -1;
	if (bucket.len < BUCKET_NAME_MIN || bucket.len > BUCKET_NAME_MAX)
		return failure_set(
			f, 422, "VOLUME::INVALID_OSSFS_BUCKET",
			"volume '%s': ossfs.bucket must be given, of %d to %d characters",
			out->name, BUCKET_NAME_MIN, BUCKET_NAME_MAX);
	if (!bucket_name_ok(bucket))
		return failure_set(f, 400, "VOLUME::INVALID_OSSFS_BUCKET",
				   "volume '%s': ossfs.bucket must be of letters, digits, '-' "
				   "and '.'",
				   out->name);
	if (endpoint.len == 0)
		return failure_set(f, 422, "VOLUME::INVALID_OSSFS_ENDPOINT",
				   "volume '%s': ossfs.endpoint must be given", out->name);
	endpoint = view_trim(endpoint);
	if (!bucket_endpoint_ok(endpoint))
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
		if (!bucket_option_ok(option))
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
	if (!bucket_key_ok(id) || !bucket_key_ok(secret))
		return failure_set(f, 400, code,
				   "volume '%s': the ossfs keys must be of letters, digits and "
				   "-._+/=, at most %d",
				   out->name, BUCKET_KEY_MAX);
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
