/*
 * store/store_int.h - what the store's own files share: the connection, statements, migrations.
 *
 * Every family of tables is one file: its migrations, which store.c lists by number, and its
 * statements, which are prepared when the store is opened.
 */
#pragma once

#include <sqlite3.h>
#include <stddef.h>

#include "base/macro.h"
#include "store/store.h"

struct err;

/* The statements of one file. */
struct store_part {
	const char *const *sql;
	size_t n;
};

enum store_parts { STORE_SANDBOXES, STORE_IMAGES, STORE_SNAPSHOTS, STORE_VOLUMES, STORE_PARTS_ };

extern const struct store_part store_sandboxes_part, store_images_part, store_snapshots_part,
	store_volumes_part;

/* Migrations, by the version that each makes. */
extern const char store_migration_1[]; /* sandboxes and their events */
extern const char store_migration_2[]; /* images, layers, pulls */
extern const char store_migration_3[]; /* snapshots */
extern const char store_migration_4[]; /* named volumes */

struct store {
	sqlite3 *db;
	sqlite3_stmt **statements[STORE_PARTS_];
};

/* The error that SQLite has just met, with `what` was tried. */
int store_failed(struct store *s, const char *what, struct err *e);
osb_must_check int store_execute(struct store *s, const char *sql, struct err *e);

/* A statement of a part, ready to be bound: `store_fresh(s, STORE_IMAGES, PUT_IMAGE)`. */
sqlite3_stmt *store_fresh(struct store *s, enum store_parts part, size_t which);

/* Binds the caller's string (or NULL), which must stay until the statement has run. */
void store_bind_text(sqlite3_stmt *q, int i, const char *text);
const char *store_text(sqlite3_stmt *q, int column); /* valid until the next row; may be NULL */

/* Runs a statement that returns no rows; it lets go of the caller's strings at once. */
osb_must_check int store_run(struct store *s, sqlite3_stmt *q, const char *what, struct err *e);

/* Steps through the rows of `q`; what `row` returns below 0 ends the walk and is returned. */
osb_must_check int store_walk(struct store *s, sqlite3_stmt *q,
			      int (*row)(void *arg, sqlite3_stmt *q), void *arg, struct err *e);
