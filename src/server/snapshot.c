/*
 * server/snapshot.c - snapshots as objects: states, records, JSON.
 */
#include "server/snapshot.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "server/encode.h"
#include "store/store_snapshots.h"

#define RESTORE_MAX (8u << 20)

static const char *const state_name[SNAPSHOT_STATES_] = {
	[SNAPSHOT_CREATING] = "Creating",
	[SNAPSHOT_READY] = "Ready",
	[SNAPSHOT_FAILED] = "Failed",
	[SNAPSHOT_DELETING] = "Deleting",
};

const char *snapshot_state_name(enum snapshot_state state)
{
	return state_name[state];
}

struct snapshot *snapshot_new(void)
{
	struct snapshot *n = mem_new(struct snapshot);

	list_init(&n->link);
	n->reason = SNAPSHOT_REASON_ACCEPTED;
	return n;
}

void snapshot_free(struct snapshot *n)
{
	if (!n)
		return;
	list_remove(&n->link);
	free(n->name);
	free(n->message);
	sandbox_root_done(&n->root);
	free(n);
}

void snapshot_become(struct snapshot *n, enum snapshot_state state, const char *reason,
		     const char *message)
{
	char *text = mem_strdup(message);

	free(n->message);
	n->message = text;
	n->state = state;
	n->reason = reason;
	n->changed_us = (int64_t)(clock_wall_ns() / 1000);
}

/* ---- records ---- */

static const char *reason_of(const char *text)
{
	static const char *const known[] = {
		SNAPSHOT_REASON_ACCEPTED, SNAPSHOT_REASON_READY,     SNAPSHOT_REASON_FAILED,
		SNAPSHOT_REASON_RECOVERY, SNAPSHOT_REASON_REQUESTED,
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strcmp(known[i], text) == 0)
			return known[i];
	return SNAPSHOT_REASON_FAILED;
}

static enum snapshot_state state_of(const char *name)
{
	for (int i = 0; i < SNAPSHOT_STATES_; i++)
		if (strcmp(state_name[i], name) == 0)
			return (enum snapshot_state)i;
	return SNAPSHOT_FAILED;
}

int snapshot_load(struct snapshot *n, const struct store_snapshot *record, struct err *e)
{
	osb_cleanup(json_freep) struct json *restore = NULL;
	int r;

	if (strlen(record->id) >= sizeof(n->id) ||
	    strlen(record->sandbox_id) >= sizeof(n->sandbox_id))
		return err_set(e, -EINVAL, "a stored snapshot has an id that is too long");
	r = json_parse(view_of(record->restore), 0, &restore, e);
	if (r < 0)
		return r;
	memcpy(n->id, record->id, strlen(record->id) + 1);
	memcpy(n->sandbox_id, record->sandbox_id, strlen(record->sandbox_id) + 1);
	n->name = record->name ? mem_strdup(record->name) : NULL;
	n->state = state_of(record->state);
	n->reason = reason_of(record->reason);
	n->message = mem_strdup(record->message);
	n->created_us = record->created_us;
	n->changed_us = record->changed_us;
	n->layer = record->layer;
	sandbox_root_parse(restore, &n->root);
	return 0;
}

int snapshot_restore_format(const struct snapshot *n, char **ret, struct err *e)
{
	struct buf out = BUF_INIT(RESTORE_MAX);
	struct json_writer w;
	int r;

	json_writer_init(&w, &out);
	json_write_object(&w);
	sandbox_root_format(&w, &n->root);
	json_write_object_end(&w);
	r = json_writer_end(&w);
	if (r < 0) {
		buf_done(&out);
		return err_set(e, r, "the snapshot's record is too large");
	}
	*ret = buf_take_str(&out);
	return 0;
}

/* ---- for clients ---- */

void snapshot_encode(struct json_writer *w, const struct snapshot *n)
{
	json_write_object(w);
	json_put_cstr(w, "id", n->id);
	json_put_cstr(w, "sandboxId", n->sandbox_id);
	if (n->name)
		json_put_cstr(w, "name", n->name);
	json_write_key(w, "status");
	json_write_object(w);
	json_put_cstr(w, "state", state_name[n->state]);
	json_put_cstr(w, "reason", n->reason);
	json_put_cstr(w, "message", n->message);
	encode_time(w, "lastTransitionAt", n->changed_us);
	json_write_object_end(w);
	encode_time(w, "createdAt", n->created_us);
	json_write_object_end(w);
}
