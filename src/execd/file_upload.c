/*
 * execd/file_upload.c - POST /files/upload: files of a multipart form, straight from the socket
 * to the disk.
 *
 * The nth "metadata" part tells where the nth "file" part goes.  Metadata that comes first, as the
 * SDKs send it, lets the bytes go straight beside their target; a file that comes before its
 * metadata waits in an unnamed temporary file.  Each file takes its place when its last byte has
 * come; a form that breaks off leaves the earlier files and nothing of the broken one.
 */
#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/multipart.h"
#include "execd/app.h"
#include "execd/errors.h"
#include "execd/file_new.h"
#include "execd/file_root.h"
#include "execd/files.h"
#include "execd/users.h"
#include "net/http_server.h"
#include "net/loop.h"

#define METADATA_MAX	     (64u << 10)
#define WAITING_FILES_MAX    64	   /* before their metadata: each is an open file */
#define WAITING_METADATA_MAX 16384 /* before their files */
#define COPY_AT_ONCE	     (4 << 20)
/* After a failure the rest of the form is read and dropped, so that the answer is seen. */
#define DROP_MAX (64u << 20)

enum part_kind { PART_OTHER, PART_METADATA, PART_FILE };

/* One pair of parts, from whichever comes first until its file is in place. */
struct item {
	struct list link;
	bool has_meta;
	bool has_file; /* ... and all of it */
	char *path;
	struct file_meta meta;
	struct file_new file;
};

struct upload {
	struct app *app;
	struct http_exchange *x;
	struct file_root root;
	struct multipart *parser;
	struct loop_task *task; /* copies large files that could not be renamed */
	struct users *users;

	enum part_kind part;
	struct buf metadata;
	struct item *current; /* whose file is being received */
	struct list items;    /* pairs that are not complete, in order */
	struct list copying;
	size_t waiting;		 /* items in `items` */
	size_t metadatas, files; /* parts seen so far */

	bool ended; /* the body is complete */
	uint64_t dropped;
	int status; /* of the failure, 0 = none */
	const char *code;
	struct err e;
};

static void item_free(struct item *it)
{
	list_remove(&it->link);
	file_new_done(&it->file);
	free(it->path);
	free(it);
}

static void drop_items(struct list *items)
{
	list_each_safe (it, tmp, items)
		item_free(list_entry(it, struct item, link));
}

static void upload_free(struct upload *u)
{
	drop_items(&u->items);
	drop_items(&u->copying);
	loop_task_free(u->task);
	multipart_free(u->parser);
	buf_done(&u->metadata);
	users_free(u->users);
	file_root_done(&u->root);
	free(u);
}

/* Remembers the first failure and stops the parser with a code that only means "stop". */
static int upload_fail(struct upload *u, int status, const char *code)
{
	if (!u->status) {
		u->status = status;
		u->code = code;
	}
	return -ECANCELED;
}

static int bad(struct upload *u, const char *code, const char *sentence)
{
	err_set(&u->e, -EINVAL, "%s", sentence);
	return upload_fail(u, 400, code);
}

/* ---- pairs ---- */

/*
 * The first pair that lacks this kind of part, or a new one; NULL when too many wait.  All that
 * wait lack the same kind, because a part of that kind would have gone to the first of them.
 */
static struct item *item_for(struct upload *u, enum part_kind kind)
{
	size_t max = kind == PART_FILE ? WAITING_FILES_MAX : WAITING_METADATA_MAX;
	struct item *it;

	if (!list_empty(&u->items)) {
		it = list_entry(u->items.next, struct item, link);
		if (kind == PART_FILE ? !it->has_file : !it->has_meta)
			return it;
	}
	if (u->waiting >= max)
		return NULL;
	it = mem_new(struct item);
	it->meta = FILE_META_NONE;
	it->file = FILE_NEW_NONE;
	list_push_back(&u->items, &it->link);
	u->waiting++;
	return it;
}

/* Both parts are there: the file takes its place, large copies in turns of their own. */
static int item_complete(struct upload *u, struct item *it)
{
	int r;

	list_remove(&it->link);
	u->waiting--;
	if (it->file.target_fd >= 0 && it->file.written > COPY_AT_ONCE) {
		list_push_back(&u->copying, &it->link);
		return 0;
	}
	do
		r = file_new_commit(&it->file, &it->meta, &u->e);
	while (r > 0 && it->file.written <= COPY_AT_ONCE);
	if (r > 0) {
		list_push_back(&u->copying, &it->link);
		return 0;
	}
	item_free(it);
	return r < 0 ? upload_fail(u, 500, CODE_RUNTIME) : 0;
}

/* ---- parts ---- */

static int parse_metadata(struct upload *u, struct item *it)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	osb_cleanup(arena_done) struct arena scratch;
	struct view text = VIEW_NONE;
	const char *path;

	arena_init(&scratch, 4 * METADATA_MAX);
	if (json_parse(buf_view(&u->metadata), JSON_FIRST_VALUE, &v, &u->e) < 0 ||
	    file_meta_parse(v, &u->users, &it->meta, &u->e) < 0 ||
	    json_field_string(v, "path", &text, &u->e) < 0)
		return upload_fail(u, 400, CODE_FILE_METADATA);
	if (text.len == 0)
		return bad(u, CODE_FILE_METADATA, "the metadata names no path");
	if (file_root_path(&u->root, u->app, &scratch, text, &path, &u->e) < 0)
		return upload_fail(u, 400, CODE_FILE_METADATA);
	it->path = mem_strdup(path);
	it->has_meta = true;
	if (file_root_check_writable(&u->root, path, &u->e) < 0 ||
	    file_root_make_parents(&u->root, path, &u->e) < 0)
		return upload_fail(u, 500, CODE_RUNTIME);
	return 0;
}

static int metadata_end(struct upload *u)
{
	struct item *it = item_for(u, PART_METADATA);
	int r;

	if (!it)
		return bad(u, CODE_INVALID_FILE, "too many metadata parts before their files");
	u->metadatas++;
	r = parse_metadata(u, it);
	buf_clear(&u->metadata);
	if (r < 0 || !it->has_file)
		return r;
	if (file_new_aim(&it->file, &u->root, it->path, &it->meta, &u->e) < 0)
		return upload_fail(u, 500, CODE_RUNTIME);
	return item_complete(u, it);
}

static int file_begin(struct upload *u)
{
	struct item *it = item_for(u, PART_FILE);
	int r;

	if (!it)
		return bad(u, CODE_INVALID_FILE, "too many file parts before their metadata");
	u->files++;
	u->current = it;
	if (it->has_meta)
		r = file_new_open(&it->file, &u->root, it->path, &it->meta, &u->e);
	else
		r = file_new_open_spool(&it->file, u->app, &u->e);
	return r < 0 ? upload_fail(u, 500, CODE_RUNTIME) : 0;
}

static int file_end(struct upload *u)
{
	struct item *it = take_ptr(u->current);

	it->has_file = true;
	return it->has_meta ? item_complete(u, it) : 0;
}

/* Parts without a filename are no files: the protocol does not see them. */
static int on_part(void *arg, const struct multipart_part *part)
{
	struct upload *u = arg;

	u->part = PART_OTHER;
	if (!part->has_filename)
		return 0;
	if (view_is(part->name, "metadata"))
		u->part = PART_METADATA;
	if (!view_is(part->name, "file"))
		return 0;
	u->part = PART_FILE;
	return file_begin(u);
}

static int on_data(void *arg, struct view bytes)
{
	struct upload *u = arg;

	switch (u->part) {
	case PART_FILE:
		if (file_new_write(&u->current->file, bytes, &u->e) < 0)
			return upload_fail(u, 500, CODE_RUNTIME);
		return 0;
	case PART_METADATA:
		if (buf_append_view(&u->metadata, bytes) < 0)
			return bad(u, CODE_FILE_METADATA, "a metadata part has over 64 KiB");
		return 0;
	case PART_OTHER:
		return 0;
	}
	return 0;
}

static int on_part_end(void *arg)
{
	struct upload *u = arg;

	switch (u->part) {
	case PART_FILE:
		return file_end(u);
	case PART_METADATA:
		return metadata_end(u);
	case PART_OTHER:
		return 0;
	}
	return 0;
}

/* ---- the request ---- */

static void check_counts(struct upload *u)
{
	if (!multipart_complete(u->parser))
		(void)bad(u, CODE_INVALID_FILE, "the form ends before its closing boundary");
	else if (u->metadatas == 0)
		(void)bad(u, CODE_FILE_METADATA,
			  "the form has no part 'metadata' (it needs a filename parameter)");
	else if (u->files == 0)
		(void)bad(u, CODE_FILE_CONTENT,
			  "the form has no part 'file' (it needs a filename parameter)");
	else if (u->metadatas != u->files) {
		err_set(&u->e, -EINVAL, "the form has %zu metadata parts but %zu file parts",
			u->metadatas, u->files);
		(void)upload_fail(u, 400, CODE_INVALID_FILE);
	}
}

/* The exchange is over after this. */
static void upload_answer(struct upload *u)
{
	if (!u->status)
		check_counts(u);
	/* Nothing temporary is left when the client reads the answer. */
	drop_items(&u->items);
	drop_items(&u->copying);
	if (u->status)
		http_reply_error(u->x, u->status, u->code, "%s", u->e.msg);
	else
		reply_empty(u->x);
	upload_free(u);
}

static void upload_copy(void *arg)
{
	struct upload *u = arg;
	struct item *it;
	int r;

	if (list_empty(&u->copying)) {
		if (u->ended || u->status)
			upload_answer(u);
		else
			http_body_resume(u->x);
		return;
	}
	it = list_entry(u->copying.next, struct item, link);
	r = file_new_commit(&it->file, &it->meta, &u->e);
	if (r < 0) {
		(void)upload_fail(u, 500, CODE_RUNTIME);
		upload_answer(u);
		return;
	}
	if (r == 0)
		item_free(it);
	loop_task_post(u->task);
}

static void upload_body(struct http_exchange *x, struct view bytes, void *arg)
{
	struct upload *u = arg;
	struct err e = ERR_NONE;

	u->ended = bytes.len == 0;
	if (u->status) {
		u->dropped += bytes.len;
		if (u->ended || u->dropped > DROP_MAX)
			upload_answer(u);
		return;
	}
	if (!u->ended && multipart_feed(u->parser, bytes, &e) < 0 && !u->status) {
		u->e = e;
		(void)upload_fail(u, 400, CODE_INVALID_FILE);
	}
	if (u->status)
		drop_items(&u->items); /* their temporary files need not wait for the answer */
	if (!list_empty(&u->copying)) {
		http_body_pause(x);
		loop_task_post(u->task);
	} else if (u->ended) {
		upload_answer(u);
	}
}

static void upload_gone(struct http_exchange *x, void *arg)
{
	upload_free(arg);
}

void files_upload(struct app *app, struct http_exchange *x, const struct file_root *root)
{
	static const struct multipart_events events = {on_part, on_data, on_part_end};
	struct upload *u = mem_new(struct upload);
	struct view type = VIEW_NONE, boundary;

	u->app = app;
	u->x = x;
	u->root = file_root_real;
	list_init(&u->items);
	list_init(&u->copying);
	buf_init(&u->metadata, METADATA_MAX);
	u->task = loop_task_new(app->loop, upload_copy, u);

	if (file_root_copy(root, &u->root, &u->e) < 0)
		(void)upload_fail(u, 500, CODE_RUNTIME);
	else if (!http_header(x, "Content-Type", &type) || !multipart_boundary(type, &boundary))
		(void)bad(u, CODE_INVALID_FILE,
			  "the body must be multipart/form-data with a boundary");
	else
		u->parser = multipart_new(boundary, &events, u);
	if (!u->status && !u->parser)
		(void)bad(u, CODE_INVALID_FILE, "the boundary of the form is malformed");

	http_on_gone(x, upload_gone, u);
	http_body_stream(x, upload_body, u);
}
