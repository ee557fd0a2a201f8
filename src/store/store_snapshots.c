/*
 * store/store_snapshots.c - the table of snapshots.
 */
#include "store/store_snapshots.h"

#include "store/store_int.h"

const char store_migration_3[] =
	"CREATE TABLE snapshots ("
	" id TEXT PRIMARY KEY, sandbox_id TEXT NOT NULL, name TEXT, state TEXT NOT NULL,"
	" reason TEXT NOT NULL, message TEXT NOT NULL, created_us INTEGER NOT NULL,"
	" changed_us INTEGER NOT NULL, layer INTEGER NOT NULL, restore TEXT NOT NULL)"
	" STRICT, WITHOUT ROWID;";

enum { PUT_SNAPSHOT, DELETE_SNAPSHOT, EACH_SNAPSHOT, STATEMENTS_ };

static const char *const statement_sql[STATEMENTS_] = {
	[PUT_SNAPSHOT] = ("INSERT OR REPLACE INTO snapshots (id, sandbox_id, name, state, reason,"
			  " message, created_us, changed_us, layer, restore)"
			  " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"),
	[DELETE_SNAPSHOT] = "DELETE FROM snapshots WHERE id = ?1",
	[EACH_SNAPSHOT] = ("SELECT id, sandbox_id, name, state, reason, message, created_us,"
			   " changed_us, layer, restore FROM snapshots ORDER BY created_us, id"),
};

const struct store_part store_snapshots_part = {statement_sql, STATEMENTS_};

int store_put_snapshot(struct store *s, const struct store_snapshot *n, struct err *e)
{
	sqlite3_stmt *q = store_fresh(s, STORE_SNAPSHOTS, PUT_SNAPSHOT);

	store_bind_text(q, 1, n->id);
	store_bind_text(q, 2, n->sandbox_id);
	store_bind_text(q, 3, n->name);
	store_bind_text(q, 4, n->state);
	store_bind_text(q, 5, n->reason);
	store_bind_text(q, 6, n->message);
	sqlite3_bind_int64(q, 7, n->created_us);
	sqlite3_bind_int64(q, 8, n->changed_us);
	sqlite3_bind_int64(q, 9, (int64_t)n->layer);
	store_bind_text(q, 10, n->restore);
	return store_run(s, q, "write a snapshot", e);
}

int store_delete_snapshot(struct store *s, const char *id, struct err *e)
{
	sqlite3_stmt *q = store_fresh(s, STORE_SNAPSHOTS, DELETE_SNAPSHOT);

	store_bind_text(q, 1, id);
	return store_run(s, q, "delete a snapshot", e);
}

struct snapshot_walk {
	int (*fn)(void *arg, const struct store_snapshot *n);
	void *arg;
};

static int snapshot_row(void *arg, sqlite3_stmt *q)
{
	struct snapshot_walk *w = arg;
	struct store_snapshot n = {
		.id = store_text(q, 0),
		.sandbox_id = store_text(q, 1),
		.name = store_text(q, 2),
		.state = store_text(q, 3),
		.reason = store_text(q, 4),
		.message = store_text(q, 5),
		.created_us = sqlite3_column_int64(q, 6),
		.changed_us = sqlite3_column_int64(q, 7),
		.layer = (uint64_t)sqlite3_column_int64(q, 8),
		.restore = store_text(q, 9),
	};

	return w->fn(w->arg, &n);
}

int store_each_snapshot(struct store *s, int (*fn)(void *arg, const struct store_snapshot *n),
			void *arg, struct err *e)
{
	struct snapshot_walk w = {.fn = fn, .arg = arg};

	return store_walk(s, store_fresh(s, STORE_SNAPSHOTS, EACH_SNAPSHOT), snapshot_row, &w, e);
}
