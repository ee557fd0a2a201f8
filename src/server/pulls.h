/*
 * server/pulls.h - images on their way here: one pull per image, however many wait for it.
 *
 * A pull fetches blobs, unpacks each as it arrives, and ends with an image or with the registry's
 * own words.  It outlives the clients that asked for it, and a killed server begins it again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/macro.h"
#include "base/view.h"
#include "server/failure.h"

struct config;
struct err;
struct image;
struct images;
struct jobs;
struct json_writer;
struct loop;
struct pulls;
struct store;

enum pull_state {
	PULL_QUEUED, /* behind another of the same image, with other credentials */
	PULL_RUNNING,
	PULL_READY,
	PULL_FAILED,
	PULL_STATES_
};

struct pull_layer;
struct pull_manifest;

struct pull {
	struct list link; /* newest first */
	char id[40];
	char *key; /* the image's full name */
	enum pull_state state;
	struct failure failure; /* of PULL_FAILED */
	char *image;		/* id, of PULL_READY */
	int64_t started_us, ended_us;
	uint64_t bytes, total; /* as far as they are known */
	unsigned layers, layers_done;
	/* the pulls' own */
	struct pulls *all;
	char *auth; /* JSON or NULL */
	bool asked; /* for its own sake: it goes on when nobody waits */
	bool fetched;
	unsigned attempts;
	struct job *job;
	struct pull_manifest *manifest; /* NULL until it has come */
	struct list waiting;
};

/* Somebody who waits for a pull; lives in the waiter's own memory. */
struct pull_wait {
	struct list link;
	struct pull *pull; /* NULL when nobody waits */
	/* Once, from the loop: `image` is NULL on failure. */
	void (*ended)(void *arg, struct image *image, const struct failure *f);
	void (*progress)(void *arg, const struct pull *p); /* or NULL */
	void *arg;
};

osb_must_check int pulls_new(struct loop *l, const struct config *config, struct store *store,
			     struct jobs *jobs, struct images *images, struct pulls **ret,
			     struct err *e);
void pulls_free(struct pulls *p); /* accepts NULL; what is under way goes on at the next start */

/* Begins again what a killed server has left. */
void pulls_resume(struct pulls *p);

/* Joins the pull of that image, or starts one.  `auth` is JSON, or NULL. */
void pulls_wait(struct pulls *p, const char *key, const char *auth, struct pull_wait *w);
/* Joins the pull of that image whatever its credentials: they are not known any more. */
void pulls_rejoin(struct pulls *p, const char *key, struct pull_wait *w);
/* Nothing comes any more; a pull that nobody waits for, and nobody asked for itself, ends. */
void pulls_leave(struct pull_wait *w);

/* Starts or joins a pull for its own sake.  NULL with *f filled if there are too many. */
struct pull *pulls_ask(struct pulls *p, const char *key, const char *auth, struct failure *f);
void pulls_cancel(struct pull *pull); /* whoever waits is told */

struct pull *pulls_find(struct pulls *p, struct view id);
struct pull *pulls_next(struct pulls *p, struct pull *after); /* newest first */

/* "3 of 7 layers, 12.0 of 40.1 MB" */
void pull_progress_text(const struct pull *p, char *ret, size_t size);
