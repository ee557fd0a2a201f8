/*
 * server/snapshots.h - the service of snapshots: taken, listed, restored, deleted.
 *
 * Everything lives in memory and is written through to the store.  Taking one freezes its sandbox
 * while a job copies what it has written; the answer does not wait for that.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "server/snapshot.h"

struct err;
struct failure;
struct images;
struct jobs;
struct layers;
struct sandbox;
struct sandbox_spec;
struct sandboxes;
struct snapshots;
struct store;

struct snapshots_means {
	struct store *store;
	struct jobs *jobs;
	struct images *images;
	struct layers *layers;
	struct sandboxes *sandboxes;
};

/* Loads what the store knows and ends what was under way: after the sandboxes were loaded. */
osb_must_check int snapshots_new(const struct snapshots_means *means, struct snapshots **ret,
				 struct err *e);
void snapshots_free(struct snapshots *s); /* accepts NULL */

/* The server ends, and no sandbox is to stand still until the next: while there is a runtime. */
void snapshots_stop(struct snapshots *s); /* accepts NULL */

struct snapshot *snapshots_find(struct snapshots *s, struct view id); /* NULL if unknown */
/* Newest first: `n = NULL; while ((n = snapshots_next(s, n)))`. */
struct snapshot *snapshots_next(struct snapshots *s, struct snapshot *after);

/* Accepts it: it is Creating when this returns, and later Ready or Failed.  `name` may be empty.
 * NULL with *f on failure. */
struct snapshot *snapshots_take(struct snapshots *s, struct sandbox *b, struct view name,
				struct failure *f);

/* It is gone when this returns 0. */
osb_must_check int snapshots_delete(struct snapshots *s, struct snapshot *n, struct failure *f);

/* Makes the spec's root that of the snapshot which it names, if it names one. */
osb_must_check int snapshots_restore(struct snapshots *s, struct sandbox_spec *spec,
				     struct failure *f);
