/*
 * server/sandboxes.h - the service: every sandbox, its state, its end, its record.
 *
 * The API asks here and nowhere else.  Everything lives in memory and is written through to the
 * store before an answer leaves.  Operations that need the runtime call back exactly once, from the
 * loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "server/failure.h"
#include "server/sandbox.h"

struct config;
struct err;
struct loop;
struct images;
struct pulls;
struct runtime;
struct sandboxes;
struct store;
struct store_event;
struct volumes;

/* Loads what the store knows.  `runtime` may be set later (its events come to sandboxes_runtime_*).
 */
osb_must_check int sandboxes_new(struct loop *l, const struct config *config, struct store *store,
				 struct images *images, struct pulls *pulls, struct sandboxes **ret,
				 struct err *e);
void sandboxes_set_runtime(struct sandboxes *s, struct runtime *r); /* borrowed */
/* Borrowed; holds what the sandboxes that were loaded mount. */
void sandboxes_set_volumes(struct sandboxes *s, struct volumes *v);
void sandboxes_free(struct sandboxes *s); /* accepts NULL */

/* What the runtime tells (struct runtime_events with `arg` = the service). */
extern const struct runtime_events sandboxes_events;

struct sandbox *sandboxes_find(struct sandboxes *s, struct view id); /* NULL if unknown */
/* Is it one of the last that have expired? */
bool sandboxes_expired(const struct sandboxes *s, struct view id);
size_t sandboxes_count(const struct sandboxes *s);

/* Newest first: `b = NULL; while ((b = sandboxes_next(s, b)))`. */
struct sandbox *sandboxes_next(struct sandboxes *s, struct sandbox *after);

/* `f` is NULL on success; `b` is borrowed and valid during the call. */
typedef void sandboxes_fn(void *arg, struct sandbox *b, const struct failure *f);

/* Takes the spec (also on failure).  Answers when the sandbox runs, or, if its image takes long,
 * that it is pending. */
void sandboxes_create(struct sandboxes *s, struct sandbox_spec *spec, int64_t timeout_s,
		      sandboxes_fn *fn, void *arg);

/* `b` is gone when fn is called with success (it gets NULL). */
void sandboxes_delete(struct sandboxes *s, struct sandbox *b, sandboxes_fn *fn, void *arg);
void sandboxes_pause(struct sandboxes *s, struct sandbox *b, sandboxes_fn *fn, void *arg);
void sandboxes_resume(struct sandboxes *s, struct sandbox *b, sandboxes_fn *fn, void *arg);

/* Called whenever one of these operations, asked by anybody, has ended. */
void sandboxes_on_settled(struct sandboxes *s, void (*fn)(void *arg), void *arg);

/*
 * For a snapshot.  A sandbox that is reserved waits with deleting, pausing and further snapshots
 * until it is thawed, cannot be frozen, or is unreserved; it may be the turn of others first.  It
 * stands still from the answer of freeze to that of thaw, and stays Running for everybody else.
 */
void sandboxes_reserve(struct sandboxes *s, struct sandbox *b, sandboxes_fn *fn, void *arg);
void sandboxes_unreserve(struct sandboxes *s, const char *id);
void sandboxes_freeze(struct sandboxes *s, const char *id, sandboxes_fn *fn, void *arg);
void sandboxes_thaw(struct sandboxes *s, const char *id, sandboxes_fn *fn, void *arg);
/* When the server ends: asks for it, and waits for nothing. */
void sandboxes_thaw_at_end(struct sandboxes *s, const char *id);
bool sandboxes_use_snapshot(struct sandboxes *s, const char *snapshot); /* made from it */
osb_must_check int sandboxes_add_event(struct sandboxes *s, const char *id, const char *reason,
				       const char *message, struct err *e);

/* At once; -1 with *f filled on failure. */
osb_must_check int sandboxes_renew(struct sandboxes *s, struct sandbox *b, int64_t expires_us,
				   struct failure *f);

/* Merge patch: an empty `p` of a value deletes the key. */
struct sandboxes_patch {
	struct view key, value;
	bool remove;
};
osb_must_check int sandboxes_patch_metadata(struct sandboxes *s, struct sandbox *b,
					    const struct sandboxes_patch *patch, size_t n,
					    struct failure *f);

/* Somebody used the sandbox through the proxy: renews it if it asked for that and the server allows
 * it. */
void sandboxes_accessed(struct sandboxes *s, struct sandbox *b);

/* Events of a sandbox, newest first. */
osb_must_check int sandboxes_each_event(struct sandboxes *s, const struct sandbox *b,
					unsigned limit,
					int (*fn)(void *arg, const struct store_event *ev),
					void *arg, struct err *e);

struct runtime *sandboxes_runtime(struct sandboxes *s);
