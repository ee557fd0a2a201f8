/*
 * codec/www_authenticate.h - the challenges of a WWW-Authenticate header (RFC 9110, 11.6.1).
 */
#pragma once

#include "base/macro.h"
#include "base/view.h"

struct arena;

struct www_challenge {
	struct view scheme; /* "Bearer", "Basic", in whatever case */
	/* Parameters that we know; empty when absent. */
	struct view realm, service, scope, error;
};

/*
 * Takes the next challenge off *rest; values are unquoted into the arena.  1 = a challenge,
 * 0 = the end, -EINVAL = malformed, -E2BIG.
 */
osb_must_check int www_authenticate_next(struct arena *a, struct view *rest,
					 struct www_challenge *ret);

/* The first challenge of a scheme: 1 found, 0 absent or unreadable. */
int www_authenticate_find(struct arena *a, struct view header, const char *scheme,
			  struct www_challenge *ret);
