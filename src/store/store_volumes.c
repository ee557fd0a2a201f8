/*
 * store/store_volumes.c - the table of named volumes.
 */
#include "store/store_volumes.h"

#include "store/store_int.h"

const char store_migration_4[] =
	"CREATE TABLE volumes ("
	" number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_us INTEGER NOT NULL,"
	" made_by TEXT NOT NULL) STRICT;";

enum { PUT_VOLUME, DELETE_VOLUME, EACH_VOLUME, STATEMENTS_ };

static const char *const statement_sql[STATEMENTS_] = {
	[PUT_VOLUME] = ("INSERT OR REPLACE INTO volumes (number, name, created_us, made_by)"
			" VALUES (?1, ?2, ?3, ?4)"),
	[DELETE_VOLUME] = "DELETE FROM volumes WHERE number = ?1",
	[EACH_VOLUME] = "SELECT number, name, created_us, made_by FROM volumes ORDER BY number",
};

const struct store_part store_volumes_part = {statement_sql, STATEMENTS_};

int store_put_volume(struct store *s, const struct store_volume *v, struct err *e)
{
	sqlite3_stmt *q = store_fresh(s, STORE_VOLUMES, PUT_VOLUME);

	sqlite3_bind_int64(q, 1, (int64_t)v->number);
	store_bind_text(q, 2, v->name);
	sqlite3_bind_int64(q, 3, v->created_us);
	store_bind_text(q, 4, v->made_by);
	return store_run(s, q, "write a volume", e);
}

int store_delete_volume(struct store *s, uint64_t number, struct err *e)
{
	sqlite3_stmt *q = store_fresh(s, STORE_VOLUMES, DELETE_VOLUME);

	sqlite3_bind_int64(q, 1, (int64_t)number);
	return store_run(s, q, "delete a volume", e);
}

struct volume_walk {
	int (*fn)(void *arg, const struct store_volume *v);
	void *arg;
};

static int volume_row(void *arg, sqlite3_stmt *q)
{
	struct volume_walk *w = arg;
	struct store_volume v = {
		.number = (uint64_t)sqlite3_column_int64(q, 0),
		.name = store_text(q, 1),
		.created_us = sqlite3_column_int64(q, 2),
		.made_by = store_text(q, 3),
	};

	return w->fn(w->arg, &v);
}

int store_each_volume(struct store *s, int (*fn)(void *arg, const struct store_volume *v),
		      void *arg, struct err *e)
{
	struct volume_walk w = {.fn = fn, .arg = arg};

	return store_walk(s, store_fresh(s, STORE_VOLUMES, EACH_VOLUME), volume_row, &w, e);
}
