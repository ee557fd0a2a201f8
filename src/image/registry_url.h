/*
 * image/registry_url.h - where a URL leads: the part of it that decides who gets to see a secret.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"

struct err;

struct registry_origin {
	bool tls;
	char host[300]; /* "name", "[v6]", with ":port" unless it is the scheme's own; lower case */
};

/* Only http and https, no user names: -EBADMSG otherwise. */
osb_must_check int registry_origin_of(const char *url, struct registry_origin *ret, struct err *e);
bool registry_origin_eq(const struct registry_origin *a, const struct registry_origin *b);

/* `location`, which may be relative, as seen from `base`; NULL when malformed.  On the heap. */
osb_must_check char *registry_url_join(const char *base, const char *location);
