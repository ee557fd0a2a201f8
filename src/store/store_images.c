/*
 * store/store_images.c - images, names, layers, pulls.
 */
#include "store/store_images.h"

#include "base/err.h"
#include "store/store_int.h"

const char store_migration_2[] =
	"CREATE TABLE numbers (kind TEXT PRIMARY KEY, next INTEGER NOT NULL) STRICT;"
	"CREATE TABLE layers ("
	" number INTEGER PRIMARY KEY, diff_id TEXT UNIQUE, bytes INTEGER NOT NULL,"
	" files INTEGER NOT NULL, created_us INTEGER NOT NULL, host_usr INTEGER NOT NULL) STRICT;"
	"CREATE TABLE images ("
	" id TEXT PRIMARY KEY, digest TEXT, config TEXT NOT NULL, created_us INTEGER NOT NULL,"
	" used_us INTEGER NOT NULL) STRICT;"
	"CREATE TABLE image_layers ("
	" image TEXT NOT NULL REFERENCES images (id) ON DELETE CASCADE, position INTEGER NOT NULL,"
	" number INTEGER NOT NULL REFERENCES layers (number),"
	" PRIMARY KEY (image, position)) STRICT, WITHOUT ROWID;"
	"CREATE INDEX image_layers_of ON image_layers (number);"
	"CREATE TABLE image_names ("
	" name TEXT PRIMARY KEY,"
	" image TEXT NOT NULL REFERENCES images (id) ON DELETE CASCADE) STRICT, WITHOUT ROWID;"
	"CREATE INDEX image_names_of ON image_names (image);"
	"CREATE TABLE pulls ("
	" reference TEXT PRIMARY KEY, auth TEXT, started_us INTEGER NOT NULL) STRICT;";

enum statement {
	TAKE_NUMBERS,
	PUT_LAYER,
	DELETE_LAYER,
	EACH_LAYER,
	PUT_IMAGE,
	TOUCH_IMAGE,
	DELETE_IMAGE,
	EACH_IMAGE,
	DROP_IMAGE_LAYERS,
	PUT_IMAGE_LAYER,
	EACH_IMAGE_LAYER,
	PUT_NAME,
	DELETE_NAME,
	EACH_NAME,
	PUT_PULL,
	DELETE_PULL,
	EACH_PULL,
	STATEMENTS_
};

static const char *const sql[STATEMENTS_] = {
	[TAKE_NUMBERS] = "INSERT INTO numbers (kind, next) VALUES (?1, 1 + ?2)"
			 " ON CONFLICT (kind) DO UPDATE SET next = next + ?2"
			 " RETURNING next - ?2",
	[PUT_LAYER] = "INSERT INTO layers"
		      " (number, diff_id, bytes, files, created_us, host_usr)"
		      " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[DELETE_LAYER] = "DELETE FROM layers WHERE number = ?1",
	[EACH_LAYER] = "SELECT number, diff_id, bytes, files, created_us, host_usr FROM layers",
	[PUT_IMAGE] = "INSERT INTO images (id, digest, config, created_us, used_us)"
		      " VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (id) DO UPDATE SET"
		      " digest = coalesce(?2, digest), config = ?3, used_us = ?5",
	[TOUCH_IMAGE] = "UPDATE images SET used_us = ?2 WHERE id = ?1",
	[DELETE_IMAGE] = "DELETE FROM images WHERE id = ?1",
	[EACH_IMAGE] = "SELECT id, digest, config, created_us, used_us FROM images"
		       " ORDER BY created_us, id",
	[DROP_IMAGE_LAYERS] = "DELETE FROM image_layers WHERE image = ?1",
	[PUT_IMAGE_LAYER] = "INSERT INTO image_layers (image, position, number)"
			    " VALUES (?1, ?2, ?3)",
	[EACH_IMAGE_LAYER] = "SELECT image, number FROM image_layers ORDER BY image, position",
	[PUT_NAME] = "INSERT OR REPLACE INTO image_names (name, image) VALUES (?1, ?2)",
	[DELETE_NAME] = "DELETE FROM image_names WHERE name = ?1",
	[EACH_NAME] = "SELECT name, image FROM image_names",
	[PUT_PULL] = "INSERT OR REPLACE INTO pulls (reference, auth, started_us)"
		     " VALUES (?1, ?2, ?3)",
	[DELETE_PULL] = "DELETE FROM pulls WHERE reference = ?1",
	[EACH_PULL] = "SELECT reference, auth, started_us FROM pulls ORDER BY started_us",
};

const struct store_part store_images_part = {sql, ARRAY_LEN(sql)};

static sqlite3_stmt *fresh(struct store *s, enum statement which)
{
	return store_fresh(s, STORE_IMAGES, which);
}

/* ---- numbers ---- */

static int number_row(void *arg, sqlite3_stmt *q)
{
	*(uint64_t *)arg = (uint64_t)sqlite3_column_int64(q, 0);
	return 0;
}

int store_take_numbers(struct store *s, const char *kind, uint64_t n, uint64_t *ret_first,
		       struct err *e)
{
	sqlite3_stmt *q = fresh(s, TAKE_NUMBERS);

	store_bind_text(q, 1, kind);
	sqlite3_bind_int64(q, 2, (int64_t)n);
	return store_walk(s, q, number_row, ret_first, e);
}

/* ---- layers ---- */

int store_put_layer(struct store *s, const struct store_layer *l, struct err *e)
{
	sqlite3_stmt *q = fresh(s, PUT_LAYER);

	sqlite3_bind_int64(q, 1, (int64_t)l->number);
	store_bind_text(q, 2, l->diff_id);
	sqlite3_bind_int64(q, 3, (int64_t)l->bytes);
	sqlite3_bind_int64(q, 4, (int64_t)l->files);
	sqlite3_bind_int64(q, 5, l->created_us);
	sqlite3_bind_int(q, 6, l->host_usr);
	return store_run(s, q, "write a layer", e);
}

int store_delete_layer(struct store *s, uint64_t number, struct err *e)
{
	sqlite3_stmt *q = fresh(s, DELETE_LAYER);

	sqlite3_bind_int64(q, 1, (int64_t)number);
	return store_run(s, q, "delete a layer", e);
}

struct layer_walk {
	int (*fn)(void *arg, const struct store_layer *l);
	void *arg;
};

static int layer_row(void *arg, sqlite3_stmt *q)
{
	struct layer_walk *w = arg;
	struct store_layer l = {
		.number = (uint64_t)sqlite3_column_int64(q, 0),
		.diff_id = store_text(q, 1),
		.bytes = (uint64_t)sqlite3_column_int64(q, 2),
		.files = (uint64_t)sqlite3_column_int64(q, 3),
		.created_us = sqlite3_column_int64(q, 4),
		.host_usr = sqlite3_column_int(q, 5) != 0,
	};

	return w->fn(w->arg, &l);
}

int store_each_layer(struct store *s, int (*fn)(void *arg, const struct store_layer *l), void *arg,
		     struct err *e)
{
	struct layer_walk w = {.fn = fn, .arg = arg};

	return store_walk(s, fresh(s, EACH_LAYER), layer_row, &w, e);
}

/* ---- images ---- */

int store_put_image(struct store *s, const struct store_image *i, struct err *e)
{
	sqlite3_stmt *q = fresh(s, PUT_IMAGE);
	int r;

	store_bind_text(q, 1, i->id);
	store_bind_text(q, 2, i->digest);
	store_bind_text(q, 3, i->config);
	sqlite3_bind_int64(q, 4, i->created_us);
	sqlite3_bind_int64(q, 5, i->used_us);
	r = store_run(s, q, "write an image", e);
	if (r < 0)
		return r;
	q = fresh(s, DROP_IMAGE_LAYERS);
	store_bind_text(q, 1, i->id);
	r = store_run(s, q, "write an image's layers", e);
	for (size_t n = 0; r == 0 && n < i->layers_n; n++) {
		q = fresh(s, PUT_IMAGE_LAYER);
		store_bind_text(q, 1, i->id);
		sqlite3_bind_int64(q, 2, (int64_t)n);
		sqlite3_bind_int64(q, 3, (int64_t)i->layers[n]);
		r = store_run(s, q, "write an image's layers", e);
	}
	return r;
}

int store_touch_image(struct store *s, const char *id, int64_t used_us, struct err *e)
{
	sqlite3_stmt *q = fresh(s, TOUCH_IMAGE);

	store_bind_text(q, 1, id);
	sqlite3_bind_int64(q, 2, used_us);
	return store_run(s, q, "write an image's last use", e);
}

int store_delete_image(struct store *s, const char *id, struct err *e)
{
	sqlite3_stmt *q = fresh(s, DELETE_IMAGE);

	store_bind_text(q, 1, id);
	return store_run(s, q, "delete an image", e);
}

struct image_walk {
	int (*fn)(void *arg, const struct store_image *i);
	void *arg;
};

static int image_row(void *arg, sqlite3_stmt *q)
{
	struct image_walk *w = arg;
	struct store_image i = {
		.id = store_text(q, 0),
		.digest = store_text(q, 1),
		.config = store_text(q, 2),
		.created_us = sqlite3_column_int64(q, 3),
		.used_us = sqlite3_column_int64(q, 4),
	};

	return w->fn(w->arg, &i);
}

int store_each_image(struct store *s, int (*fn)(void *arg, const struct store_image *i), void *arg,
		     struct err *e)
{
	struct image_walk w = {.fn = fn, .arg = arg};

	return store_walk(s, fresh(s, EACH_IMAGE), image_row, &w, e);
}

struct image_layer_walk {
	int (*fn)(void *arg, const char *image, uint64_t number);
	void *arg;
};

static int image_layer_row(void *arg, sqlite3_stmt *q)
{
	struct image_layer_walk *w = arg;

	return w->fn(w->arg, store_text(q, 0), (uint64_t)sqlite3_column_int64(q, 1));
}

int store_each_image_layer(struct store *s,
			   int (*fn)(void *arg, const char *image, uint64_t number), void *arg,
			   struct err *e)
{
	struct image_layer_walk w = {.fn = fn, .arg = arg};

	return store_walk(s, fresh(s, EACH_IMAGE_LAYER), image_layer_row, &w, e);
}

/* ---- names ---- */

int store_put_image_name(struct store *s, const char *name, const char *image, struct err *e)
{
	sqlite3_stmt *q = fresh(s, PUT_NAME);

	store_bind_text(q, 1, name);
	store_bind_text(q, 2, image);
	return store_run(s, q, "write an image's name", e);
}

int store_delete_image_name(struct store *s, const char *name, struct err *e)
{
	sqlite3_stmt *q = fresh(s, DELETE_NAME);

	store_bind_text(q, 1, name);
	return store_run(s, q, "delete an image's name", e);
}

struct name_walk {
	int (*fn)(void *arg, const char *name, const char *image);
	void *arg;
};

static int name_row(void *arg, sqlite3_stmt *q)
{
	struct name_walk *w = arg;

	return w->fn(w->arg, store_text(q, 0), store_text(q, 1));
}

int store_each_image_name(struct store *s,
			  int (*fn)(void *arg, const char *name, const char *image), void *arg,
			  struct err *e)
{
	struct name_walk w = {.fn = fn, .arg = arg};

	return store_walk(s, fresh(s, EACH_NAME), name_row, &w, e);
}

/* ---- pulls ---- */

int store_put_pull(struct store *s, const struct store_pull *p, struct err *e)
{
	sqlite3_stmt *q = fresh(s, PUT_PULL);

	store_bind_text(q, 1, p->reference);
	store_bind_text(q, 2, p->auth);
	sqlite3_bind_int64(q, 3, p->started_us);
	return store_run(s, q, "write a pull", e);
}

/* A secret leaves the pages and the write-ahead log, too. */
int store_delete_pull(struct store *s, const char *reference, struct err *e)
{
	sqlite3_stmt *q = fresh(s, DELETE_PULL);
	int r = store_execute(s, "PRAGMA secure_delete = ON", e);

	if (r < 0)
		return r;
	store_bind_text(q, 1, reference);
	r = store_run(s, q, "delete a pull", e);
	if (r == 0)
		r = store_execute(s, "PRAGMA secure_delete = OFF; PRAGMA wal_checkpoint(TRUNCATE)",
				  e);
	return r;
}

struct pull_walk {
	int (*fn)(void *arg, const struct store_pull *p);
	void *arg;
};

static int pull_row(void *arg, sqlite3_stmt *q)
{
	struct pull_walk *w = arg;
	struct store_pull p = {
		.reference = store_text(q, 0),
		.auth = store_text(q, 1),
		.started_us = sqlite3_column_int64(q, 2),
	};

	return w->fn(w->arg, &p);
}

int store_each_pull(struct store *s, int (*fn)(void *arg, const struct store_pull *p), void *arg,
		    struct err *e)
{
	struct pull_walk w = {.fn = fn, .arg = arg};

	return store_walk(s, fresh(s, EACH_PULL), pull_row, &w, e);
}
