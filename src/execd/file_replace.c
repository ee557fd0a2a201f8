/*
 * execd/file_replace.c - POST /files/replace: text replaced in whole files, of any size.
 *
 * A file is read in windows, first to see whether there is anything to replace, then again to
 * write the new content beside it, which takes its place when it is complete.  Bytes are bytes:
 * files need not be text.
 */
#include <errno.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/url.h"
#include "execd/errors.h"
#include "execd/file_info.h"
#include "execd/file_job.h"
#include "execd/file_names.h"
#include "execd/file_new.h"
#include "execd/files.h"
#include "net/http_server.h"

#define BODY_MAX    (16u << 20)
#define SCRATCH_MAX (256u << 10)
#define READ_BYTES  ((size_t)128 << 10)
#define READ_MAX    ((size_t)1 << 20)
#define WRITE_BYTES (256u << 10) /* gathered before they are written */
#define STEP_BYTES  (1u << 20)	 /* written in one step, about */

enum replace_stage { CHECK, OPEN, SCAN, COPY, COMMIT };

struct replace_job {
	struct file_job job;
	struct json *body;
	void *at; /* in the body */
	bool verbose;
	enum replace_stage stage;
	struct file_answer answer;
	/* of the current file */
	struct view key, old, new;
	struct arena scratch;
	const char *path;
	int fd;
	struct stat st;
	off_t offset; /* read so far */
	bool end;     /* everything was read */
	struct buf window;
	struct buf out;
	struct file_new file;
	uint64_t count;
};

static void file_done(struct replace_job *j)
{
	j->fd = fd_close(j->fd);
	file_new_done(&j->file);
	buf_clear(&j->window);
	buf_clear(&j->out);
	arena_done(&j->scratch);
	j->count = 0;
	j->offset = 0;
	j->end = false;
}

/* Takes the next member of the body; false at the end.  It is well-formed after the check. */
static bool next_item(struct replace_job *j, const struct json **ret)
{
	return json_next(j->body, &j->at, &j->key, ret);
}

static int check_item(struct replace_job *j, const struct json *item, struct err *e)
{
	j->old = j->new = VIEW_NONE;
	if (json_kind(item) != JSON_OBJECT)
		return err_set(e, -EINVAL, "'%.*s' needs an object with old and new, not %s",
			       (int)MIN(j->key.len, (size_t)120), j->key.p,
			       json_kind_name(json_kind(item)));
	if (json_field_string(item, "old", &j->old, e) < 0 ||
	    json_field_string(item, "new", &j->new, e) < 0)
		return e->code;
	if (j->old.len == 0)
		return err_set(e, -EINVAL, "'%.*s': old must not be empty",
			       (int)MIN(j->key.len, (size_t)120), j->key.p);
	return 0;
}

static int open_item(struct replace_job *j, struct err *e)
{
	int r;

	r = file_root_path(&j->job.root, j->job.app, &j->scratch, j->key, &j->path, e);
	if (r < 0)
		return r;
	r = file_root_open_regular(&j->job.root, j->path, &j->st, e);
	if (r < 0)
		return r;
	j->fd = r;
	return 0;
}

/* One more piece of the file into the window. */
static int fill(struct replace_job *j, struct err *e)
{
	char name[FILE_NAME_SHORT];
	/* A long needle is looked for in long pieces: it is compared with each of them anew. */
	size_t piece = MAX(READ_BYTES, MIN(j->old.len, READ_MAX));
	char *at = buf_reserve(&j->window, piece);
	ssize_t n;

	if (!at)
		return err_set(e, -E2BIG, "'%s': old is too long", file_name_short(j->path, name));
	do
		n = pread(j->fd, at, piece, j->offset);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_set(e, -errno, "read '%s': %m", file_name_short(j->path, name));
	buf_commit(&j->window, (size_t)n);
	j->offset += n;
	j->end = n == 0;
	return 0;
}

/* What can not be the beginning of a match that ends in the next piece. */
static size_t settled(const struct replace_job *j)
{
	size_t keep = j->end ? 0 : j->old.len - 1;

	return j->window.len > keep ? j->window.len - keep : 0;
}

static int write_out(struct replace_job *j, struct view bytes, struct err *e)
{
	int r = 0;

	if (j->out.len + bytes.len > WRITE_BYTES) {
		r = file_new_write(&j->file, buf_view(&j->out), e);
		buf_clear(&j->out);
	}
	if (r < 0)
		return r;
	if (bytes.len > WRITE_BYTES)
		return file_new_write(&j->file, bytes, e);
	r = buf_append_view(&j->out, bytes);
	return r < 0 ? err_set(e, r, "out of room") : 0;
}

static int scan_step(struct replace_job *j, struct err *e)
{
	int r = fill(j, e);

	if (r < 0)
		return r;
	if (view_find_view(buf_view(&j->window), j->old) < j->window.len) {
		static const struct file_meta keep = FILE_META_NONE;

		buf_clear(&j->window);
		j->offset = 0;
		j->end = false;
		j->stage = COPY;
		r = file_new_open(&j->file, &j->job.root, j->path, &keep, e);
		if (r == 0 && (!j->file.exists || j->file.st.st_ino != j->st.st_ino ||
			       j->file.st.st_dev != j->st.st_dev))
			return err_set(e, -ESTALE, "the file was exchanged meanwhile");
		return r;
	}
	buf_consume(&j->window, settled(j));
	if (j->end)
		j->stage = COMMIT; /* of nothing */
	return 0;
}

static int copy_step(struct replace_job *j, struct err *e)
{
	size_t written = 0;
	int r = 0;

	if (!j->end)
		r = fill(j, e);
	while (r == 0 && written < STEP_BYTES) {
		struct view window = buf_view(&j->window);
		size_t at = view_find_view(window, j->old);
		bool found = at < window.len;
		size_t plain = found ? at : settled(j);

		r = write_out(j, view_first(window, plain), e);
		if (r == 0 && found)
			r = write_out(j, j->new, e);
		buf_consume(&j->window, plain + (found ? j->old.len : 0));
		if (!found) {
			if (j->end && r == 0) {
				r = file_new_write(&j->file, buf_view(&j->out), e);
				j->stage = COMMIT;
			}
			break;
		}
		j->count++;
		written += plain + j->new.len;
	}
	return r;
}

static int commit_step(struct replace_job *j, struct err *e)
{
	static const struct file_meta keep = FILE_META_NONE;
	int r = j->count > 0 ? file_new_commit(&j->file, &keep, e) : 0;

	if (r != 0)
		return r < 0 ? r : 0;
	if (j->verbose) {
		file_info_write_key(&j->answer.w, j->key);
		json_write_object(&j->answer.w);
		json_put_int(&j->answer.w, "replacedCount", (int64_t)j->count);
		json_write_object_end(&j->answer.w);
	}
	file_done(j);
	j->stage = OPEN;
	return 0;
}

static enum file_job_next finish(struct replace_job *j)
{
	if (!j->verbose) {
		reply_empty(j->job.x);
		return FILE_JOB_DONE;
	}
	json_write_object_end(&j->answer.w);
	return file_answer_end(&j->answer, j->job.x);
}

static enum file_job_next replace_step(struct file_job *job)
{
	struct replace_job *j = container_of(job, struct replace_job, job);
	const struct json *item;
	struct err e = ERR_NONE;
	int r = 0;

	switch (j->stage) {
	case CHECK:
		if (next_item(j, &item)) {
			r = check_item(j, item, &e);
		} else {
			j->at = NULL;
			j->stage = OPEN;
		}
		break;
	case OPEN:
		if (!next_item(j, &item))
			return finish(j);
		r = check_item(j, item, &e);
		if (r == 0)
			r = open_item(j, &e);
		j->stage = SCAN;
		break;
	case SCAN:
		r = scan_step(j, &e);
		break;
	case COPY:
		r = copy_step(j, &e);
		break;
	case COMMIT:
		r = commit_step(j, &e);
		break;
	}
	if (r < 0) {
		file_done(j); /* nothing temporary is left when the client reads the answer */
		return file_job_fail(job, &e);
	}
	return FILE_JOB_MORE;
}

static enum file_job_next replace_body(struct file_job *job, struct view body)
{
	struct replace_job *j = container_of(job, struct replace_job, job);
	struct view verbose = VIEW_NONE;
	struct err e = ERR_NONE;

	if (json_parse(body, JSON_FIRST_VALUE, &j->body, &e) == 0 &&
	    json_kind(j->body) != JSON_OBJECT)
		err_set(&e, -EINVAL, "the body must be an object of paths, not %s",
			json_kind_name(json_kind(j->body)));
	if (e.code == 0 &&
	    url_query_get(http_arena(job->x), http_query(job->x), "verbose", &verbose) < 0)
		err_set(&e, -EINVAL, "the query is malformed");
	if (e.code < 0) {
		reply_bad_request(job->x, CODE_INVALID_REQUEST, &e);
		return FILE_JOB_DONE;
	}
	j->verbose = view_is(verbose, "true") || view_is(verbose, "1");
	json_write_object(&j->answer.w);
	return FILE_JOB_MORE;
}

static void replace_free(struct file_job *job)
{
	struct replace_job *j = container_of(job, struct replace_job, job);

	file_done(j);
	buf_done(&j->window);
	buf_done(&j->out);
	file_answer_done(&j->answer);
	json_free(j->body);
	free(j);
}

void files_replace(struct app *app, struct http_exchange *x, const struct file_root *root)
{
	static const struct file_job_ops ops = {
		.body = replace_body,
		.body_max = BODY_MAX,
		.step = replace_step,
		.free = replace_free,
	};
	struct replace_job *j = mem_new(struct replace_job);

	j->fd = -1;
	j->file = FILE_NEW_NONE;
	arena_init(&j->scratch, SCRATCH_MAX);
	/* A window holds less than `old` and two pieces. */
	buf_init(&j->window, BODY_MAX + 2 * READ_MAX);
	buf_init(&j->out, WRITE_BYTES);
	file_answer_init(&j->answer);
	file_job_start(&j->job, &ops, app, x, root);
}
