/*
 * server/request_fields.h - fields of request bodies: read with their type checked, or a 422 that
 * names them.
 *
 * Absent and null are the same: the output stays as it was.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct failure;
struct json;
struct pairs;
struct strv;

#define REQUEST_CODE "SANDBOX::INVALID_PARAMETER"

osb_must_check int request_string(const struct json *v, const char *key, struct view *ret,
				  struct failure *f);
osb_must_check int request_bool(const struct json *v, const char *key, bool *ret,
				struct failure *f);
osb_must_check int request_object(const struct json *v, const char *key, const struct json **ret,
				  struct failure *f);
osb_must_check int request_array(const struct json *v, const char *key, const struct json **ret,
				 struct failure *f);

/* A map of strings.  With nulls: members that are null are left out. */
osb_must_check int request_pairs(const struct json *v, const char *key, struct pairs *ret,
				 struct failure *f);
osb_must_check int request_pairs_with_nulls(const struct json *v, const char *key,
					    struct pairs *ret, struct failure *f);

/* The strings of an array, at most `max`; `field` names it in messages. */
osb_must_check int request_words(const struct json *array, const char *field, size_t max,
				 struct strv *ret, struct failure *f);

/* image{uri, auth?{username, password}}.  *ret_auth is JSON for the registry client, the caller's;
 * NULL if there is none. */
osb_must_check int request_image(const struct json *image, struct view *ret_uri, char **ret_auth,
				 struct failure *f);
osb_must_check int request_auth(const struct json *v, char **ret_auth, struct failure *f);

/* One metadata key and value, by the rules of labels. */
osb_must_check int request_label(struct view key, struct view value, const char *code,
				 struct failure *f);
