/*
 * server/pulls_int.h - what the files of pulls share.
 */
#pragma once

#include "server/config.h"
#include "server/pulls.h"
#include "server/unpacks.h"

struct pulls {
	struct loop *loop;
	const struct config *config;
	struct store *store;
	struct jobs *jobs;
	struct images *images;
	struct unpacks *unpacks;
	struct list all; /* newest first */
};

void pull_start(struct pull *p); /* from queued to running */
void pull_stop(struct pull *p);	 /* no job, no layers are waited for any more */

/* With `image` NULL, p->failure says why.  Tells those who wait, and starts the next. */
void pulls_ended(struct pull *p, struct image *image);
