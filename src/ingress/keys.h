/*
 * ingress/keys.h - the keys of signed routes, as they stand on the command line.
 */
#pragma once

#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct err;
struct route_key;

/* "a=BASE64,b=BASE64": at least one, at most PREVIEW_KEYS_MAX, each name once.  On success the
 * caller frees *ret.  The sentence of a failure repeats no secret. */
osb_must_check int keys_parse(struct view text, struct route_key **ret, size_t *ret_n,
			      struct err *e);
