/*
 * server/volumes.h - named volumes: directories of this server that outlive sandboxes.
 *
 * Everything lives in memory and is written through to the store; the directories are made, filled
 * and removed by jobs.  A volume that a sandbox mounts is held by it: nobody removes it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/macro.h"
#include "base/view.h"

struct err;
struct failure;
struct jobs;
struct json_writer;
struct store;
struct volumes;
struct volumes_list;

struct named_volume {
	struct list link; /* newest first */
	uint64_t number;  /* of its directory */
	char *name;
	int64_t created_us;
	char made_by[40]; /* the sandbox whose request made it, or "" */
	size_t users;	  /* sandboxes that hold it */
	bool busy;	  /* being made or filled */
};

osb_must_check int volumes_new(struct store *store, struct jobs *jobs, struct volumes **ret,
			       struct err *e);
void volumes_free(struct volumes *v); /* accepts NULL */

struct named_volume *volumes_find(struct volumes *v, struct view name); /* NULL if unknown */
/* Newest first: `n = NULL; while ((n = volumes_next(v, n)))`. */
struct named_volume *volumes_next(struct volumes *v, struct named_volume *after);

/* `f` is NULL on success; `n` is borrowed and valid during the call. */
typedef void volumes_fn(void *arg, struct named_volume *n, const struct failure *f);

/* The name was checked.  409 if there is one already. */
void volumes_make(struct volumes *v, struct view name, volumes_fn *fn, void *arg);
/* At once: its record is gone, its files go in the background.  409 while it is used. */
osb_must_check int volumes_remove(struct volumes *v, struct named_volume *n, struct failure *f);
/* Unpacks images/uploads/UPLOAD into it.  409 while it is used. */
void volumes_seed(struct volumes *v, struct named_volume *n, const char *upload, volumes_fn *fn,
		  void *arg);

typedef void volumes_size_fn(void *arg, uint64_t bytes, uint64_t files, const struct failure *f);
void volumes_measure(struct volumes *v, struct named_volume *n, volumes_size_fn *fn, void *arg);

/* ---- for sandboxes ---- */

/*
 * Finds the named volumes of a sandbox, makes those that are missing and may be, and holds them.
 * `l` must stay until fn is called, which may be before this returns; on failure nothing is held
 * and nothing was made.
 */
typedef void volumes_ready_fn(void *arg, const struct failure *f);
void volumes_prepare(struct volumes *v, struct volumes_list *l, const char *sandbox,
		     volumes_ready_fn *fn, void *arg);

/* The runtime has made the sandbox, or has not: mounts that it was to copy are not needed any more.
 */
void volumes_launched(struct volumes *v, struct volumes_list *l);

void volumes_hold(struct volumes *v, const struct volumes_list *l); /* at load */

/* The sandbox has gone.  Removes what was made for it, if that was asked for or if the sandbox
 * never came to be, unless others hold it. */
enum volumes_end { VOLUMES_ENDED, VOLUMES_NEVER_BEGAN };
void volumes_release(struct volumes *v, const struct volumes_list *l, enum volumes_end end);

/* The numbers of all, as items of an array: what a sweep must keep. */
void volumes_write_numbers(const struct volumes *v, struct json_writer *w);
