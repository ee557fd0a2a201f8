/*
 * net/http_pool.h - connections that rest between two requests, by the name of what they lead to.
 *
 * Bounded in number and time.  A connection is only ever given out under the name that it was kept
 * by.  One that the server closes meanwhile goes at once; that a server closes it while the next
 * request is on its way cannot be excluded: see http_pool_take().
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"
#include "base/view.h"

struct http_call;
struct http_pool;
struct loop;

struct http_pool *http_pool_new(struct loop *l);
void http_pool_free(struct http_pool *p); /* accepts NULL; closes everything */

/*
 * A resting call, or NULL.  A request that cannot be repeated (`once`) gets one only if the kernel
 * knows of no end; any other may find it closed after all, and is then asked again.
 */
struct http_call *http_pool_take(struct http_pool *p, struct view name, bool once);

/* Takes the call, which is reusable; closes it instead if there are too many. */
void http_pool_keep(struct http_pool *p, struct view name, struct http_call *c);
