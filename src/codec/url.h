/*
 * codec/url.h - request targets, percent-encoding, queries.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"
#include "base/view.h"

struct arena;
struct buf;

struct url_target {
	struct view path;  /* raw, begins with '/' */
	struct view query; /* raw, without '?'; empty when there is none */
};

/* Origin form, or absolute form whose authority is cut off.  False when malformed ("#", controls,
 * ...). */
bool url_target_parse(struct view text, struct url_target *ret);

enum url_decode_mode { URL_PATH, URL_FORM /* '+' is a space */ };

/* Percent-decodes into the arena.  -EINVAL on a bad escape, -E2BIG. NULs are refused with -EINVAL.
 */
osb_must_check int url_decode(struct arena *a, struct view text, enum url_decode_mode mode,
			      struct view *ret);

/* Appends `text` percent-encoded: all but unreserved characters (and '/' if keep_slash). */
osb_must_check int url_encode(struct buf *out, struct view text, bool keep_slash);

/* Walks "a=b&c" pair by pair, decoded into the arena: 1 = a pair, 0 = the end, -EINVAL, -E2BIG. */
osb_must_check int url_query_next(struct arena *a, struct view *rest, struct view *ret_name,
				  struct view *ret_value);

/* First value of `name`: 1 found, 0 absent, or -errno for a malformed query. */
osb_must_check int url_query_get(struct arena *a, struct view query, const char *name,
				 struct view *ret);
