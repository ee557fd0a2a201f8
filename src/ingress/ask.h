/*
 * ingress/ask.h - one question to a server's API, and its answer as a whole.
 */
#pragma once

#include <stddef.h>

#include "base/view.h"

struct ask;
struct err;
struct loop;
struct upstreams;

#define ASK_ANSWER_MAX 65536

/* Called once: a status and a body, or status 0 and the reason; the question is over. */
typedef void ask_fn(void *arg, int status, struct view body, const struct err *e);

/* GET of `path` (without the server's own part) with the API key, if there is one. */
struct ask *ask_new(struct loop *l, struct upstreams *u, size_t i, const char *api_key,
		    struct view path, ask_fn *fn, void *arg);
void ask_free(struct ask *a); /* accepts NULL; before the call: no call follows */
