/*
 * store/store.h - what the server remembers, in SQLite: sandboxes and their events.
 *
 * One writer, WAL, STRICT tables, numbered migrations.  A call returns when the change is durable
 * against a killed process (synchronous=NORMAL in WAL mode; a lost machine may lose the last
 * moments, never consistency). Reads at run time come from memory; the store is read at start.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct err;
struct store;

/* A sandbox as it is kept; strings are borrowed by calls, and valid only inside the callback of a
 * load. */
struct store_sandbox {
	const char *id;
	const char *state, *reason, *message; /* message may be NULL */
	int64_t created_us, changed_us;	      /* Unix microseconds */
	int64_t expires_us;		      /* 0 = never */
	int32_t pid;
	uint64_t start_time;
	const char *token; /* of its exec endpoint */
	const char
		*spec; /* JSON: image, entrypoint, metadata, env, limits, extensions, platform... */
};

struct store_event {
	int64_t at_us;
	const char *kind;   /* "Normal" or "Warning" */
	const char *reason; /* "Created", "OOMKilled", ... */
	const char *message;
};

osb_must_check int store_open(const char *path, struct store **ret, struct err *e); /* migrates */
void store_close(struct store *s); /* accepts NULL */

osb_must_check int store_put_sandbox(struct store *s, const struct store_sandbox *b,
				     struct err *e); /* insert or replace */
osb_must_check int store_delete_sandbox(struct store *s, const char *id,
					struct err *e); /* and its events */
osb_must_check int store_each_sandbox(struct store *s,
				      int (*fn)(void *arg, const struct store_sandbox *b),
				      void *arg, struct err *e);

/* Keeps the newest 500 events of a sandbox. */
osb_must_check int store_add_event(struct store *s, const char *id, const struct store_event *ev,
				   struct err *e);
osb_must_check int store_each_event(struct store *s, const char *id,
				    unsigned limit, /* newest first */
				    int (*fn)(void *arg, const struct store_event *ev), void *arg,
				    struct err *e);

/* Groups changes into one commit: everything between begin and end is durable at end.  `r` is what
 * the changes returned: if one has failed, all are undone, and it is returned. */
osb_must_check int store_begin(struct store *s, struct err *e);
osb_must_check int store_end(struct store *s, int r, struct err *e);
