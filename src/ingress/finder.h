/*
 * ingress/finder.h - which server has a sandbox, and the token that it demands.
 *
 * Servers are asked in their order, the one that had the sandbox last first.  What they say is
 * remembered for a moment; requests for one sandbox wait for one answer.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/view.h"

struct finder;
struct finding;
struct loop;
struct upstreams;

enum found { FOUND, FOUND_NOWHERE, FOUND_ERROR };

struct found_at {
	enum found what;
	size_t server;	   /* of FOUND */
	struct view token; /* of FOUND: empty if the sandbox demands none */
	const char *why;   /* of FOUND_ERROR: a sentence */
};

/* `api_key` (or NULL) is borrowed. */
struct finder *finder_new(struct loop *l, struct upstreams *u, const char *api_key);
void finder_free(struct finder *f); /* accepts NULL; no call follows */

/* Calls fn once, at once if it is known; then NULL is returned.  Else a handle that is good until
 * the call. */
typedef void finder_fn(void *arg, const struct found_at *at);
struct finding *finder_find(struct finder *f, struct view id, uint16_t port, finder_fn *fn,
			    void *arg);
void finding_cancel(struct finding *w); /* accepts NULL; no call follows */

void finder_forget(struct finder *f, struct view id); /* what was remembered was wrong */
