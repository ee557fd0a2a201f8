/*
 * server/snapshot.h - one snapshot: what a sandbox had written when it was taken, as a layer, and
 * everything below it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/macro.h"
#include "base/view.h"
#include "server/sandbox.h"

struct err;
struct json_writer;
struct store_snapshot;

enum snapshot_state {
	SNAPSHOT_CREATING,
	SNAPSHOT_READY,
	SNAPSHOT_FAILED,
	SNAPSHOT_DELETING,
	SNAPSHOT_STATES_
};

const char *snapshot_state_name(enum snapshot_state state); /* "Ready" */

/* The protocol's words. */
#define SNAPSHOT_REASON_ACCEPTED  "snapshot_accepted"
#define SNAPSHOT_REASON_READY	  "snapshot_runtime_ready"
#define SNAPSHOT_REASON_FAILED	  "snapshot_runtime_failed"
#define SNAPSHOT_REASON_RECOVERY  "snapshot_recovery_failed"
#define SNAPSHOT_REASON_REQUESTED "snapshot_delete_requested"

/* What is below it and itself: at most so many layers make a sandbox's root. */
#define SNAPSHOT_LAYERS_MAX 200

struct snapshot {
	struct list link; /* newest first */
	char id[40], sandbox_id[40];
	char *name; /* or NULL */
	enum snapshot_state state;
	const char *reason; /* static */
	char *message;
	int64_t created_us, changed_us;
	uint64_t layer;		  /* the captured one; 0 = there is none */
	struct sandbox_root root; /* with that layer on top, once there is one */
};

struct snapshot *snapshot_new(void);
void snapshot_free(struct snapshot *n); /* accepts NULL */

void snapshot_become(struct snapshot *n, enum snapshot_state state, const char *reason,
		     const char *message);

/* From a record of the store, whose strings are copied. */
osb_must_check int snapshot_load(struct snapshot *n, const struct store_snapshot *record,
				 struct err *e);
/* The member `restore` of a record; the caller owns the text. */
osb_must_check int snapshot_restore_format(const struct snapshot *n, char **ret, struct err *e);

/* The object of the protocol. */
void snapshot_encode(struct json_writer *w, const struct snapshot *n);
