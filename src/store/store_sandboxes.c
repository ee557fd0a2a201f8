/*
 * store/store_sandboxes.c - sandboxes and what happened to them.
 */
#include "store/store_int.h"

#define EVENTS_KEPT 500

const char store_migration_1[] =
	"CREATE TABLE sandboxes ("
	" id TEXT PRIMARY KEY, state TEXT NOT NULL, reason TEXT NOT NULL, message TEXT,"
	" created_us INTEGER NOT NULL, changed_us INTEGER NOT NULL, expires_us INTEGER NOT NULL,"
	" pid INTEGER NOT NULL, start_time INTEGER NOT NULL, token TEXT NOT NULL,"
	" spec TEXT NOT NULL) STRICT, WITHOUT ROWID;"
	"CREATE TABLE events ("
	" seq INTEGER PRIMARY KEY AUTOINCREMENT, sandbox_id TEXT NOT NULL, at_us INTEGER NOT NULL,"
	" kind TEXT NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL) STRICT;"
	"CREATE INDEX events_of ON events (sandbox_id, seq);";

enum statement {
	PUT_SANDBOX,
	DELETE_SANDBOX,
	DELETE_EVENTS,
	EACH_SANDBOX,
	ADD_EVENT,
	TRIM_EVENTS,
	EACH_EVENT,
	STATEMENTS_
};

static const char *const sql[STATEMENTS_] = {
	[PUT_SANDBOX] = "INSERT OR REPLACE INTO sandboxes (id, state, reason, message, created_us,"
			" changed_us, expires_us, pid, start_time, token, spec)"
			" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
	[DELETE_SANDBOX] = "DELETE FROM sandboxes WHERE id = ?1",
	[DELETE_EVENTS] = "DELETE FROM events WHERE sandbox_id = ?1",
	[EACH_SANDBOX] =
		"SELECT id, state, reason, message, created_us, changed_us, expires_us, pid,"
		" start_time, token, spec FROM sandboxes ORDER BY created_us, id",
	[ADD_EVENT] = "INSERT INTO events (sandbox_id, at_us, kind, reason, message)"
		      " VALUES (?1, ?2, ?3, ?4, ?5)",
	[TRIM_EVENTS] = "DELETE FROM events WHERE sandbox_id = ?1 AND seq <="
			" (SELECT seq FROM events WHERE sandbox_id = ?1"
			"  ORDER BY seq DESC LIMIT 1 OFFSET ?2)",
	[EACH_EVENT] = "SELECT at_us, kind, reason, message FROM events WHERE sandbox_id = ?1"
		       " ORDER BY seq DESC LIMIT ?2",
};

const struct store_part store_sandboxes_part = {sql, ARRAY_LEN(sql)};

int store_put_sandbox(struct store *s, const struct store_sandbox *b, struct err *e)
{
	sqlite3_stmt *q = store_fresh(s, STORE_SANDBOXES, PUT_SANDBOX);

	store_bind_text(q, 1, b->id);
	store_bind_text(q, 2, b->state);
	store_bind_text(q, 3, b->reason);
	store_bind_text(q, 4, b->message);
	sqlite3_bind_int64(q, 5, b->created_us);
	sqlite3_bind_int64(q, 6, b->changed_us);
	sqlite3_bind_int64(q, 7, b->expires_us);
	sqlite3_bind_int64(q, 8, b->pid);
	sqlite3_bind_int64(q, 9, (int64_t)b->start_time);
	store_bind_text(q, 10, b->token);
	store_bind_text(q, 11, b->spec);
	return store_run(s, q, "write a sandbox", e);
}

int store_delete_sandbox(struct store *s, const char *id, struct err *e)
{
	sqlite3_stmt *q = store_fresh(s, STORE_SANDBOXES, DELETE_EVENTS);
	int r;

	store_bind_text(q, 1, id);
	r = store_run(s, q, "delete events", e);
	if (r < 0)
		return r;
	q = store_fresh(s, STORE_SANDBOXES, DELETE_SANDBOX);
	store_bind_text(q, 1, id);
	return store_run(s, q, "delete a sandbox", e);
}

struct sandbox_walk {
	int (*fn)(void *arg, const struct store_sandbox *b);
	void *arg;
};

static int sandbox_row(void *arg, sqlite3_stmt *q)
{
	struct sandbox_walk *w = arg;
	struct store_sandbox b = {
		.id = store_text(q, 0),
		.state = store_text(q, 1),
		.reason = store_text(q, 2),
		.message = store_text(q, 3),
		.created_us = sqlite3_column_int64(q, 4),
		.changed_us = sqlite3_column_int64(q, 5),
		.expires_us = sqlite3_column_int64(q, 6),
		.pid = sqlite3_column_int(q, 7),
		.start_time = (uint64_t)sqlite3_column_int64(q, 8),
		.token = store_text(q, 9),
		.spec = store_text(q, 10),
	};

	return w->fn(w->arg, &b);
}

int store_each_sandbox(struct store *s, int (*fn)(void *arg, const struct store_sandbox *b),
		       void *arg, struct err *e)
{
	struct sandbox_walk w = {.fn = fn, .arg = arg};

	return store_walk(s, store_fresh(s, STORE_SANDBOXES, EACH_SANDBOX), sandbox_row, &w, e);
}

int store_add_event(struct store *s, const char *id, const struct store_event *ev, struct err *e)
{
	sqlite3_stmt *q = store_fresh(s, STORE_SANDBOXES, ADD_EVENT);
	int r;

	store_bind_text(q, 1, id);
	sqlite3_bind_int64(q, 2, ev->at_us);
	store_bind_text(q, 3, ev->kind);
	store_bind_text(q, 4, ev->reason);
	store_bind_text(q, 5, ev->message);
	r = store_run(s, q, "write an event", e);
	if (r < 0)
		return r;
	q = store_fresh(s, STORE_SANDBOXES, TRIM_EVENTS);
	store_bind_text(q, 1, id);
	sqlite3_bind_int(q, 2, EVENTS_KEPT);
	return store_run(s, q, "trim events", e);
}

struct event_walk {
	int (*fn)(void *arg, const struct store_event *ev);
	void *arg;
};

static int event_row(void *arg, sqlite3_stmt *q)
{
	struct event_walk *w = arg;
	struct store_event ev = {
		.at_us = sqlite3_column_int64(q, 0),
		.kind = store_text(q, 1),
		.reason = store_text(q, 2),
		.message = store_text(q, 3),
	};

	return w->fn(w->arg, &ev);
}

int store_each_event(struct store *s, const char *id, unsigned limit,
		     int (*fn)(void *arg, const struct store_event *ev), void *arg, struct err *e)
{
	struct event_walk w = {.fn = fn, .arg = arg};
	sqlite3_stmt *q = store_fresh(s, STORE_SANDBOXES, EACH_EVENT);

	store_bind_text(q, 1, id);
	sqlite3_bind_int64(q, 2, limit);
	return store_walk(s, q, event_row, &w, e);
}
