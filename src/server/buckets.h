/*
 * server/buckets.h - object stores, mounted for as long as it takes to make a sandbox of them.
 *
 * A sandbox keeps its own copy of the mount.  The one that it was copied from is taken away as soon
 * as the sandbox is there, and the program that serves it ends with the last copy.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"

struct buckets;
struct failure;
struct jobs;
struct store;
struct volume;

struct buckets *buckets_new(struct store *store, struct jobs *jobs);
void buckets_free(struct buckets *b); /* accepts NULL */

/* Mounts the bucket of a volume; the number names its mount point.  Calls back from the loop,
 * unless it returns -1 with *f. */
typedef void buckets_fn(void *arg, uint64_t number, const struct failure *f);
osb_must_check int buckets_mount(struct buckets *b, const struct volume *v, buckets_fn *fn,
				 void *arg, struct failure *f);

/* In the background. */
void buckets_unmount(struct buckets *b, uint64_t number);
