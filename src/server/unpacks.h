/*
 * server/unpacks.h - blobs that become layers: each once, however many wait for it.
 */
#pragma once

#include <stdint.h>

#include "base/list.h"
#include "base/macro.h"
#include "base/view.h"

struct jobs;
struct layers;
struct unpacks;

/* Somebody who waits for a layer; lives in the waiter's own memory. */
struct unpack_wait {
	struct list link;
	/* Once, from the loop.  `code` is NULL on success. */
	void (*fn)(void *arg, uint64_t number, const char *code, const char *message);
	void *arg;
};

struct unpack_blob {
	struct view digest, media_type, diff_id;
};

struct unpacks *unpacks_new(struct jobs *jobs, struct layers *layers, uint64_t max_bytes);
void unpacks_free(struct unpacks *u); /* accepts NULL */

/* The blob is in images/blobs, and goes when the layer is there. */
void unpacks_wait(struct unpacks *u, const struct unpack_blob *blob, struct unpack_wait *w);
void unpacks_leave(struct unpack_wait *w); /* nothing comes any more; harmless twice */
