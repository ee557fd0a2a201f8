/*
 * server/snapshots_int.h - what the files of the snapshots' service share.
 */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "server/snapshots.h"

struct snapshots {
	struct snapshots_means means;
	struct map *by_id;
	struct list all;      /* newest first */
	struct list captures; /* under way */
};

osb_must_check int snapshots_save(struct snapshots *s, const struct snapshot *n, struct err *e);

/* Takes a snapshot that was accepted: it becomes Ready or Failed. */
void capture_start(struct snapshots *s, struct snapshot *n, struct sandbox *b);
void captures_free(struct snapshots *s); /* those under way, at the end */
