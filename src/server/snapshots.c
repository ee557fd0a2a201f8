/*
 * server/snapshots.c - snapshots: accepted, found, restored from, forgotten.
 */
#include "server/snapshots.h"

#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "server/failure.h"
#include "server/images.h"
#include "server/sandboxes.h"
#include "server/snapshots_int.h"
#include "store/store_snapshots.h"

#define SNAPSHOTS_MAX 16384

/* ---- records ---- */

int snapshots_save(struct snapshots *s, const struct snapshot *n, struct err *e)
{
	osb_cleanup(mem_freep) char *restore = NULL;
	struct store_snapshot record = {
		.id = n->id,
		.sandbox_id = n->sandbox_id,
		.name = n->name,
		.state = snapshot_state_name(n->state),
		.reason = n->reason,
		.message = n->message,
		.created_us = n->created_us,
		.changed_us = n->changed_us,
		.layer = n->layer,
	};
	int r = snapshot_restore_format(n, &restore, e);

	if (r < 0)
		return r;
	record.restore = restore;
	return store_put_snapshot(s->means.store, &record, e);
}

static void add(struct snapshots *s, struct snapshot *n)
{
	list_push_front(&s->all, &n->link);
	map_put(s->by_id, view_of(n->id), n);
}

static void drop(struct snapshots *s, struct snapshot *n)
{
	if (n->layer)
		images_leave(s->means.images, &n->root);
	map_remove(s->by_id, view_of(n->id));
	snapshot_free(n);
}

struct snapshot *snapshots_find(struct snapshots *s, struct view id)
{
	return map_get(s->by_id, id);
}

struct snapshot *snapshots_next(struct snapshots *s, struct snapshot *after)
{
	struct list *it = after ? after->link.next : s->all.next;

	return it == &s->all ? NULL : list_entry(it, struct snapshot, link);
}

/* ---- taking ---- */

static int check_source(struct snapshots *s, const struct sandbox *b, struct failure *f)
{
	if (b->state != SANDBOX_RUNNING)
		return failure_set(f, 409, "SNAPSHOT::INVALID_SOURCE_STATE",
				   "sandbox '%s' is %s, not Running", b->id,
				   sandbox_state_name(b->state));
	if (b->busy && !b->captured) {
		failure_set(f, 409, "DOCKER::SANDBOX_BUSY",
			    "sandbox '%s' is busy with another operation; try again", b->id);
		f->retry_after_s = 1;
		return -1;
	}
	if (b->spec.root.layers_n >= SNAPSHOT_LAYERS_MAX)
		return failure_set(
			f, 409, "SNAPSHOT::TOO_MANY_LAYERS",
			"sandbox '%s' is made of %zu layers, one more is too many: "
			"export a snapshot and import it again to make one layer of them",
			b->id, b->spec.root.layers_n);
	if (map_len(s->by_id) >= SNAPSHOTS_MAX)
		return failure_set(
			f, 429, "SNAPSHOT::LIMIT_REACHED",
			"there are %d snapshots, more are not allowed: delete some first",
			SNAPSHOTS_MAX);
	return 0;
}

struct snapshot *snapshots_take(struct snapshots *s, struct sandbox *b, struct view name,
				struct failure *f)
{
	struct snapshot *n;
	struct err e = ERR_NONE;

	if (check_source(s, b, f) < 0)
		return NULL;
	n = snapshot_new();
	rand_uuid(n->id);
	memcpy(n->sandbox_id, b->id, sizeof(n->sandbox_id));
	n->name = name.len ? mem_strndup(name.p, name.len) : NULL;
	sandbox_root_copy(&n->root, &b->spec.root);
	snapshot_become(n, SNAPSHOT_CREATING, SNAPSHOT_REASON_ACCEPTED,
			"Snapshot creation accepted.");
	n->created_us = n->changed_us;
	if (snapshots_save(s, n, &e) < 0) {
		failure_set(f, 500, "SNAPSHOT::CREATE_FAILED", "%s", e.msg);
		snapshot_free(n);
		return NULL;
	}
	add(s, n);
	capture_start(s, n, b);
	return n;
}

/* ---- deleting ---- */

int snapshots_delete(struct snapshots *s, struct snapshot *n, struct failure *f)
{
	struct err e = ERR_NONE;

	if (n->state == SNAPSHOT_CREATING)
		return failure_set(f, 409, "SNAPSHOT::INVALID_STATE",
				   "snapshot '%s' is still being created", n->id);
	if (n->state != SNAPSHOT_DELETING) {
		snapshot_become(n, SNAPSHOT_DELETING, SNAPSHOT_REASON_REQUESTED,
				"Snapshot deletion requested.");
		if (snapshots_save(s, n, &e) < 0)
			return failure_set(f, 500, "SNAPSHOT::DELETE_FAILED", "%s", e.msg);
	}
	if (sandboxes_use_snapshot(s->means.sandboxes, n->id))
		return failure_set(f, 409, "SNAPSHOT::DELETE_CONFLICT",
				   "snapshot '%s' is in use: delete the sandboxes that were made "
				   "from it, then try again",
				   n->id);
	if (store_delete_snapshot(s->means.store, n->id, &e) < 0)
		return failure_set(f, 500, "SNAPSHOT::DELETE_FAILED", "%s", e.msg);
	log_line(LOG_INFO, "a snapshot was deleted", LOG_S("snapshot", n->id));
	drop(s, n);
	return 0;
}

/* ---- restoring ---- */

int snapshots_restore(struct snapshots *s, struct sandbox_spec *spec, struct failure *f)
{
	struct snapshot *n;

	if (!spec->snapshot_id)
		return 0;
	n = snapshots_find(s, view_of(spec->snapshot_id));
	if (!n)
		return failure_set(f, 404, "SNAPSHOT::NOT_FOUND", "there is no snapshot '%.64s'",
				   spec->snapshot_id);
	if (n->state != SNAPSHOT_READY)
		return failure_set(f, 409, "SNAPSHOT::NOT_READY", "snapshot '%s' is %s, not Ready",
				   n->id, snapshot_state_name(n->state));
	if (n->layer == 0 || n->root.layers_n == 0)
		return failure_set(f, 409, "SNAPSHOT::INVALID_RESTORE_CONFIG",
				   "snapshot '%s' holds nothing to restore", n->id);
	sandbox_root_done(&spec->root);
	sandbox_root_copy(&spec->root, &n->root);
	return 0;
}

/* ---- beginning and end ---- */

static int load_one(void *arg, const struct store_snapshot *record)
{
	struct snapshots *s = arg;
	struct snapshot *n = snapshot_new();
	struct err e = ERR_NONE;

	if (snapshot_load(n, record, &e) < 0) {
		log_line(LOG_ERROR, "ignoring a malformed record", LOG_S("snapshot", record->id),
			 LOG_S("err", e.msg));
		snapshot_free(n);
		return 0;
	}
	if (n->layer)
		images_use(s->means.images, &n->root);
	add(s, n);
	return 0;
}

/* What was under way when the server was killed: a capture has failed, a deletion goes on. */
static int settle(struct snapshots *s, struct snapshot *n, struct err *e)
{
	struct failure f = FAILURE_NONE;

	if (n->state == SNAPSHOT_CREATING) {
		snapshot_become(n, SNAPSHOT_FAILED, SNAPSHOT_REASON_RECOVERY,
				"the server ended while the snapshot was being taken");
		return snapshots_save(s, n, e);
	}
	if (n->state == SNAPSHOT_DELETING && snapshots_delete(s, n, &f) < 0)
		log_line(LOG_INFO, "a snapshot is not deleted yet", LOG_S("err", f.message));
	return 0;
}

int snapshots_new(const struct snapshots_means *means, struct snapshots **ret, struct err *e)
{
	struct snapshots *s = mem_new(struct snapshots);
	int r;

	s->means = *means;
	s->by_id = map_new();
	list_init(&s->all);
	list_init(&s->captures);
	r = store_each_snapshot(means->store, load_one, s, e);
	list_each_safe (it, next, &s->all)
		if (r == 0)
			r = settle(s, list_entry(it, struct snapshot, link), e);
	if (r < 0) {
		snapshots_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void snapshots_free(struct snapshots *s)
{
	if (!s)
		return;
	captures_free(s);
	list_each_safe (it, next, &s->all)
		snapshot_free(list_entry(it, struct snapshot, link));
	map_free(s->by_id);
	free(s);
}
