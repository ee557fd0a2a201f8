/*
 * mcp/pool.h - the threads that run calls, so that whoever reads messages never waits.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"

struct call;
struct pool;

#define POOL_THREADS 16
#define POOL_QUEUE   64 /* calls that wait for a thread */

struct pool *pool_new(void);
void pool_free(struct pool *p); /* waits for what runs; accepts NULL */

/* False: there is no room. */
osb_must_check bool pool_submit(struct pool *p, struct call *c);
