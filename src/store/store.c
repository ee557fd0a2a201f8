/*
 * store/store.c - SQLite: open, migrate, write through.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "store/store_int.h"

/* Every change of the schema is one more entry; the database remembers how many it has seen. */
static const char *const migrations[] = {
	store_migration_1,
	store_migration_2,
	store_migration_3,
	store_migration_4,
};

static const struct store_part *const parts[STORE_PARTS_] = {
	[STORE_SANDBOXES] = &store_sandboxes_part,
	[STORE_IMAGES] = &store_images_part,
	[STORE_SNAPSHOTS] = &store_snapshots_part,
	[STORE_VOLUMES] = &store_volumes_part,
};

int store_failed(struct store *s, const char *what, struct err *e)
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

int store_execute(struct store *s, const char *sql, struct err *e)
{
	if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return store_failed(s, "execute", e);
	return 0;
}

static int read_version(struct store *s, unsigned *ret, struct err *e)
{
	sqlite3_stmt *q;

	if (sqlite3_prepare_v2(s->db, "PRAGMA user_version", -1, &q, NULL) != SQLITE_OK)
		return store_failed(s, "read the schema's version", e);
	if (sqlite3_step(q) != SQLITE_ROW) {
		sqlite3_finalize(q);
		return store_failed(s, "read the schema's version", e);
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
		r = store_execute(s, "BEGIN IMMEDIATE", e);
		if (r == 0)
			r = store_execute(s, migrations[version], e);
		if (r == 0)
			r = store_execute(s, bump, e);
		if (r == 0)
			r = store_execute(s, "COMMIT", e);
	}
	return r;
}

static int prepare(struct store *s, struct err *e)
{
	for (int part = 0; part < STORE_PARTS_; part++) {
		const struct store_part *p = parts[part];

		s->statements[part] = mem_new_array(sqlite3_stmt *, p->n);
		for (size_t i = 0; i < p->n; i++)
			if (sqlite3_prepare_v3(s->db, p->sql[i], -1, SQLITE_PREPARE_PERSISTENT,
					       &s->statements[part][i], NULL) != SQLITE_OK)
				return store_failed(s, "prepare", e);
	}
	return 0;
}

int store_open(const char *path, struct store **ret, struct err *e)
{
	struct store *s = mem_new(struct store);
	int r;

	if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
	    SQLITE_OK)
		r = store_failed(s, path, e);
	else
		r = store_execute(s,
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
	for (int part = 0; part < STORE_PARTS_; part++) {
		for (size_t i = 0; s->statements[part] && i < parts[part]->n; i++)
			sqlite3_finalize(s->statements[part][i]);
		free(s->statements[part]);
	}
	sqlite3_close(s->db);
	free(s);
}

sqlite3_stmt *store_fresh(struct store *s, enum store_parts part, size_t which)
{
	sqlite3_reset(s->statements[part][which]);
	return s->statements[part][which];
}

void store_bind_text(sqlite3_stmt *q, int i, const char *text)
{
	sqlite3_bind_text(q, i, text, -1, SQLITE_STATIC);
}

const char *store_text(sqlite3_stmt *q, int column)
{
	return (const char *)sqlite3_column_text(q, column);
}

int store_run(struct store *s, sqlite3_stmt *q, const char *what, struct err *e)
{
	int r = sqlite3_step(q) == SQLITE_DONE ? 0 : store_failed(s, what, e);

	sqlite3_reset(q);
	sqlite3_clear_bindings(q);
	return r;
}

int store_walk(struct store *s, sqlite3_stmt *q, int (*row)(void *arg, sqlite3_stmt *q), void *arg,
	       struct err *e)
{
	int step, r = 0;

	while ((step = sqlite3_step(q)) == SQLITE_ROW && r >= 0)
		r = row(arg, q);
	if (r >= 0 && step != SQLITE_DONE)
		r = store_failed(s, "read", e);
	sqlite3_reset(q);
	sqlite3_clear_bindings(q);
	return r < 0 ? r : 0;
}

int store_begin(struct store *s, struct err *e)
{
	return store_execute(s, "BEGIN IMMEDIATE", e);
}

int store_end(struct store *s, int r, struct err *e)
{
	if (r == 0)
		r = store_execute(s, "COMMIT", e);
	if (r < 0 && sqlite3_get_autocommit(s->db) == 0)
		(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	return r;
}
