/*
 * store/store_snapshots.h - snapshots: what was captured of a sandbox, and what it lies upon.
 *
 * Strings are borrowed by calls, and valid only inside the callback of a load.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"

struct err;
struct store;

struct store_snapshot {
	const char *id, *sandbox_id;
	const char *name; /* or NULL */
	const char *state, *reason, *message;
	int64_t created_us, changed_us; /* Unix microseconds */
	uint64_t layer;			/* number of the captured layer; 0 = there is none */
	const char *restore; /* JSON: what the layer lies upon, the image's configuration */
};

osb_must_check int store_put_snapshot(struct store *s, const struct store_snapshot *n,
				      struct err *e); /* insert or replace */
osb_must_check int store_delete_snapshot(struct store *s, const char *id, struct err *e);
osb_must_check int store_each_snapshot(struct store *s,
				       int (*fn)(void *arg, const struct store_snapshot *n),
				       void *arg, struct err *e); /* oldest first */
