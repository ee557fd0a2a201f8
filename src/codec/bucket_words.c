/*
 * codec/bucket_words.c - lists of characters, and of the options that cannot name a file.
 */
#include "codec/bucket_words.h"

#include "base/macro.h"

#define ENDPOINT_MAX 255

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

static bool consists_of(struct view text, const char *beyond)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = text.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    !view_has(view_of(beyond), c))
			return false;
	}
	return true;
}

bool bucket_name_ok(struct view name)
{
	return name.len > 0 && consists_of(name, "-.") && name.p[0] != '-' && name.p[0] != '.';
}

bool bucket_endpoint_ok(struct view endpoint)
{
	return endpoint.len > 0 && endpoint.len <= ENDPOINT_MAX &&
	       consists_of(endpoint, "-.:/_[]") && endpoint.p[0] != '-';
}

bool bucket_key_ok(struct view key)
{
	return key.len > 0 && key.len <= BUCKET_KEY_MAX && consists_of(key, "-._+/=");
}

bool bucket_option_ok(struct view option)
{
	struct view name = view_first(option, view_find(option, '='));
	struct view value = view_skip(option, MIN(name.len + 1, option.len));

	if (!consists_of(value, "-._"))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (view_is(name, options[i]))
			return true;
	return false;
}
