/*
 * server/volumes_int.h - what the files of the volumes' service share.
 */
#pragma once

#include "base/map.h"
#include "server/volumes.h"

struct buckets;

struct volumes {
	struct store *store;
	struct jobs *jobs;
	struct map *by_name;
	struct list all;       /* newest first */
	struct list preparing; /* sandboxes that wait for a volume */
	struct buckets *buckets;
	struct list operations; /* jobs on volumes under way */
};

/* A volume that is busy until its directory is there; NULL with *f. */
struct named_volume *volumes_begin(struct volumes *v, struct view name, const char *made_by,
				   volumes_fn *fn, void *arg, struct failure *f);

void volumes_step(struct volumes *v);	/* something has changed: those who wait may go on */
void volumes_forget(struct volumes *v); /* those who wait, at the end */
