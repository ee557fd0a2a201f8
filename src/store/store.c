/*
 * store/store.c - SQLite: open, migrate, write through.
 */
#include "store/store.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

#define EVENTS_KEPT 500

/* Every change of the schema is one more entry; the database remembers how many it has seen. */
static const char *const migrations[] = {
	"CREATE TABLE sandboxes ("
	" id TEXT PRIMARY KEY, state TEXT NOT NULL, reason TEXT NOT NULL, message TEXT,"
	" created_us INTEGER NOT NULL, changed_us INTEGER NOT NULL, expires_us INTEGER NOT NULL,"
	" pid INTEGER NOT NULL, start_time INTEGER NOT NULL, token TEXT NOT NULL,"
	" spec TEXT NOT NULL) STRICT, WITHOUT ROWID;"
	"CREATE TABLE events ("
	" seq INTEGER PRIMARY KEY AUTOINCREMENT, sandbox_id TEXT NOT NULL, at_us INTEGER NOT NULL,"
	" kind TEXT NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL) STRICT;"
	"CREATE INDEX events_of ON events (sandbox_id, seq);",
};

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

static const char *const statement_sql[STATEMENTS_] = {
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

struct store {
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENTS_];
};

static int failed(struct store *s, const char *what, struct err *e)
{
	int code = sqlite3_extended_errcode(s->db);

	switch (code & 0xff) {
	case SQLITE_FULL:
		return err_set(e, -ENOSPC, "store: %s: %s", what, sqlite3_errmsg(s->db));
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(e, -EBUSY, "store: %s: %s", what, sqlite3_errmsg(s->db));
	default:
		return err_set(e, -EIO, "store: %s: %s", what, sqlite3_errmsg(s->db));
	}
}

static int execute(struct store *s, const char *sql, struct err *e)
{
	if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return failed(s, "execute", e);
	return 0;
}

static int read_version(struct store *s, unsigned *ret, struct err *e)
{
	sqlite3_stmt *q;

	if (sqlite3_prepare_v2(s->db, "PRAGMA user_version", -1, &q, NULL) != SQLITE_OK)
		return failed(s, "read the schema's version", e);
	if (sqlite3_step(q) != SQLITE_ROW) {
		sqlite3_finalize(q);
		return failed(s, "read the schema's version", e);
	}
	*ret = (unsigned)sqlite3_column_int(q, 0);
	sqlite3_finalize(q);
	return 0;
}

static int migrate(struct store *s, struct err *e)
{
	unsigned version = 0;
	int r = read_version(s, &version, e);

	if (r == 0 && version > ARRAY_LEN(migrations))
		r = err_set(
			e, -EPROTO,
			"store: the database is of a newer version (%u) than this program (%zu)",
			version, ARRAY_LEN(migrations));
	for (; r == 0 && version < ARRAY_LEN(migrations); version++) {
		char bump[48];

		snprintf(bump, sizeof(bump), "PRAGMA user_version = %u", version + 1);
		r = execute(s, "BEGIN IMMEDIATE", e);
		if (r == 0)
			r = execute(s, migrations[version], e);
		if (r == 0)
			r = execute(s, bump, e);
		if (r == 0)
			r = execute(s, "COMMIT", e);
	}
	return r;
}

static int prepare(struct store *s, struct err *e)
{
	for (int i = 0; i < STATEMENTS_; i++)
		if (sqlite3_prepare_v3(s->db, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT,
				       &s->statements[i], NULL) != SQLITE_OK)
			return failed(s, "prepare", e);
	return 0;
}

int store_open(const char *path, struct store **ret, struct err *e)
{
	struct store *s = mem_new(struct store);
	int r;

	if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
	    SQLITE_OK)
		r = failed(s, path, e);
	else
		r = execute(s,
			    "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
			    "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;"
			    "PRAGMA busy_timeout = 2000; PRAGMA cache_size = -2048;",
			    e);
	if (r == 0)
		r = migrate(s, e);
	if (r == 0)
		r = prepare(s, e);
	if (r < 0) {
		store_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	for (int i = 0; i < STATEMENTS_; i++)
		sqlite3_finalize(s->statements[i]);
	sqlite3_close(s->db);
	free(s);
}

static sqlite3_stmt *fresh(struct store *s, enum statement which)
{
	sqlite3_reset(s->statements[which]);
	return s->statements[which];
}

static void bind_text(sqlite3_stmt *q, int i, const char *text)
{
	sqlite3_bind_text(q, i, text, -1, SQLITE_STATIC);
}

/* Runs a statement that returns no rows; it lets go of the caller's strings at once. */
static int run(struct store *s, sqlite3_stmt *q, const char *what, struct err *e)
{
	int r = sqlite3_step(q) == SQLITE_DONE ? 0 : failed(s, what, e);

	sqlite3_reset(q);
	sqlite3_clear_bindings(q);
	return r;
}

int store_put_sandbox(struct store *s, const struct store_sandbox *b, struct err *e)
{
	sqlite3_stmt *q = fresh(s, PUT_SANDBOX);

	bind_text(q, 1, b->id);
	bind_text(q, 2, b->state);
	bind_text(q, 3, b->reason);
	bind_text(q, 4, b->message);
	sqlite3_bind_int64(q, 5, b->created_us);
	sqlite3_bind_int64(q, 6, b->changed_us);
	sqlite3_bind_int64(q, 7, b->expires_us);
	sqlite3_bind_int64(q, 8, b->pid);
	sqlite3_bind_int64(q, 9, (int64_t)b->start_time);
	bind_text(q, 10, b->token);
	bind_text(q, 11, b->spec);
	return run(s, q, "write a sandbox", e);
}

int store_delete_sandbox(struct store *s, const char *id, struct err *e)
{
	sqlite3_stmt *q = fresh(s, DELETE_EVENTS);
	int r;

	bind_text(q, 1, id);
	r = run(s, q, "delete events", e);
	if (r < 0)
		return r;
	q = fresh(s, DELETE_SANDBOX);
	bind_text(q, 1, id);
	return run(s, q, "delete a sandbox", e);
}

static const char *text_of(sqlite3_stmt *q, int column)
{
	return (const char *)sqlite3_column_text(q, column);
}

/* Steps through the rows of `q`; what `row` returns below 0 ends the walk. */
static int walk(struct store *s, sqlite3_stmt *q, int (*row)(void *arg, sqlite3_stmt *q), void *arg,
		struct err *e)
{
	int step, r = 0;

	while ((step = sqlite3_step(q)) == SQLITE_ROW && r >= 0)
		r = row(arg, q);
	if (r >= 0 && step != SQLITE_DONE)
		r = failed(s, "read", e);
	sqlite3_reset(q);
	sqlite3_clear_bindings(q);
	return r < 0 ? r : 0;
}

struct sandbox_walk {
	int (*fn)(void *arg, const struct store_sandbox *b);
	void *arg;
};

static int sandbox_row(void *arg, sqlite3_stmt *q)
{
	struct sandbox_walk *w = arg;
	struct store_sandbox b = {
		.id = text_of(q, 0),
		.state = text_of(q, 1),
		.reason = text_of(q, 2),
		.message = text_of(q, 3),
		.created_us = sqlite3_column_int64(q, 4),
		.changed_us = sqlite3_column_int64(q, 5),
		.expires_us = sqlite3_column_int64(q, 6),
		.pid = sqlite3_column_int(q, 7),
		.start_time = (uint64_t)sqlite3_column_int64(q, 8),
		.token = text_of(q, 9),
		.spec = text_of(q, 10),
	};

	return w->fn(w->arg, &b);
}

int store_each_sandbox(struct store *s, int (*fn)(void *arg, const struct store_sandbox *b),
		       void *arg, struct err *e)
{
	struct sandbox_walk w = {.fn = fn, .arg = arg};

	return walk(s, fresh(s, EACH_SANDBOX), sandbox_row, &w, e);
}

int store_add_event(struct store *s, const char *id, const struct store_event *ev, struct err *e)
{
	sqlite3_stmt *q = fresh(s, ADD_EVENT);
	int r;

	bind_text(q, 1, id);
	sqlite3_bind_int64(q, 2, ev->at_us);
	bind_text(q, 3, ev->kind);
	bind_text(q, 4, ev->reason);
	bind_text(q, 5, ev->message);
	r = run(s, q, "write an event", e);
	if (r < 0)
		return r;
	q = fresh(s, TRIM_EVENTS);
	bind_text(q, 1, id);
	sqlite3_bind_int(q, 2, EVENTS_KEPT);
	return run(s, q, "trim events", e);
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
		.kind = text_of(q, 1),
		.reason = text_of(q, 2),
		.message = text_of(q, 3),
	};

	return w->fn(w->arg, &ev);
}

int store_each_event(struct store *s, const char *id, unsigned limit,
		     int (*fn)(void *arg, const struct store_event *ev), void *arg, struct err *e)
{
	struct event_walk w = {.fn = fn, .arg = arg};
	sqlite3_stmt *q = fresh(s, EACH_EVENT);

	bind_text(q, 1, id);
	sqlite3_bind_int64(q, 2, limit);
	return walk(s, q, event_row, &w, e);
}

int store_begin(struct store *s, struct err *e)
{
	return execute(s, "BEGIN IMMEDIATE", e);
}

int store_end(struct store *s, struct err *e)
{
	int r = execute(s, "COMMIT", e);

	if (r < 0 && sqlite3_get_autocommit(s->db) == 0)
		(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	return r;
}
