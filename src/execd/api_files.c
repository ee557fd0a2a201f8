/*
 * execd/api_files.c - /files: facts, removal, permissions, moves.
 *
 * Several files of one request are handled in order; the first failure ends the request, what was
 * done before it stays done.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/json.h"
#include "execd/errors.h"
#include "execd/file_info.h"
#include "execd/file_job.h"
#include "execd/file_meta.h"
#include "execd/file_names.h"
#include "execd/files.h"
#include "execd/users.h"
#include "net/http_server.h"

#define BODY_MAX    (4u << 20)
#define SCRATCH_MAX (256u << 10) /* for one path */

/* ---- GET /files/info ---- */

struct info_job {
	struct file_job job;
	struct view rest; /* of the query */
	struct map *seen;
	struct file_answer answer;
	struct file_owners owners;
};

static int info_write(struct info_job *j, struct view text, const char *path, struct err *e)
{
	osb_cleanup(file_place_done) struct file_place place = FILE_PLACE_NONE;
	char name[FILE_NAME_SHORT];
	struct stat st;
	int r;

	r = file_root_place(&j->job.root, path, &place, e);
	if (r < 0)
		return r;
	if (fstatat(place.dir_fd, place.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "'%s': %m", file_name_short(path, name));

	file_info_write_key(&j->answer.w, text);
	file_info_write(&j->answer.w, view_of(path), &st, &j->owners);
	return 0;
}

static enum file_job_next info_step(struct file_job *job)
{
	struct info_job *j = container_of(job, struct info_job, job);
	osb_cleanup(arena_done) struct arena scratch;
	struct err e = ERR_NONE;
	const char *path;
	struct view text;
	int r;

	arena_init(&scratch, SCRATCH_MAX);
	r = file_job_next_path(job, &scratch, &j->rest, &text, &path, &e);
	/* A path that is asked for twice is one member. */
	if (r > 0 && !map_put(j->seen, text, j))
		r = info_write(j, text, path, &e) < 0 ? e.code : 1;
	if (r < 0)
		return file_job_fail(job, &e);
	if (r > 0)
		return FILE_JOB_MORE;
	json_write_object_end(&j->answer.w);
	return file_answer_end(&j->answer, job->x);
}

static void info_free(struct file_job *job)
{
	struct info_job *j = container_of(job, struct info_job, job);

	map_free(j->seen);
	file_answer_done(&j->answer);
	file_owners_done(&j->owners);
	free(j);
}

void files_info(struct app *app, struct http_exchange *x, const struct file_root *root)
{
	static const struct file_job_ops ops = {.step = info_step, .free = info_free};
	struct info_job *j = mem_new(struct info_job);

	j->rest = http_query(x);
	j->seen = map_new();
	file_answer_init(&j->answer);
	file_owners_init(&j->owners);
	json_write_object(&j->answer.w);
	file_job_start(&j->job, &ops, app, x, root);
}

/* ---- DELETE /files ---- */

struct delete_job {
	struct file_job job;
	struct view rest;
};

static int delete_file(const struct file_root *root, const char *path, struct err *e)
{
	osb_cleanup(file_place_done) struct file_place place = FILE_PLACE_NONE;
	char name[FILE_NAME_SHORT];
	int r;

	r = file_root_check_writable(root, path, e);
	if (r < 0)
		return r;
	r = file_root_place(root, path, &place, e);
	if (r < 0)
		return r;
	if (unlinkat(place.dir_fd, place.name, 0) == 0)
		return 0;
	if (errno == EISDIR || strcmp(place.name, ".") == 0)
		return err_set(e, -EISDIR, "'%s' is a directory: DELETE /directories removes those",
			       file_name_short(path, name));
	return err_set(e, -errno, "delete '%s': %m", file_name_short(path, name));
}

static enum file_job_next delete_step(struct file_job *job)
{
	struct delete_job *j = container_of(job, struct delete_job, job);
	osb_cleanup(arena_done) struct arena scratch;
	struct err e = ERR_NONE;
	const char *path;
	struct view text;
	int r;

	arena_init(&scratch, SCRATCH_MAX);
	r = file_job_next_path(job, &scratch, &j->rest, &text, &path, &e);
	if (r < 0)
		return file_job_fail(job, &e);
	if (r == 0) {
		reply_empty(job->x);
		return FILE_JOB_DONE;
	}
	r = delete_file(&job->root, path, &e);
	if (r < 0 && r != -ENOENT && r != -ENOTDIR) {
		reply_runtime_error(job->x, &e);
		return FILE_JOB_DONE;
	}
	return FILE_JOB_MORE;
}

static void delete_free(struct file_job *job)
{
	free(container_of(job, struct delete_job, job));
}

void files_delete(struct app *app, struct http_exchange *x, const struct file_root *root)
{
	static const struct file_job_ops ops = {.step = delete_step, .free = delete_free};
	struct delete_job *j = mem_new(struct delete_job);

	j->rest = http_query(x);
	file_job_start(&j->job, &ops, app, x, root);
}

/* ---- POST /files/permissions, POST /directories ---- */

/* {path: meta}: everything is checked before anything is changed. */
struct meta_job {
	struct file_job job;
	struct json *body;
	void *at; /* in the body */
	bool checked;
	struct users *users;
	int (*apply)(const struct file_root *root, const char *path, const struct file_meta *m,
		     struct err *e);
};

static int set_permissions(const struct file_root *root, const char *path,
			   const struct file_meta *m, struct err *e)
{
	osb_cleanup(file_place_done) struct file_place place = FILE_PLACE_NONE;
	osb_cleanup(fd_closep) int fd = -1;
	char name[FILE_NAME_SHORT];
	int r;

	r = file_root_locate(root, path, &place, e);
	if (r < 0)
		return r;
	fd = openat(place.dir_fd, place.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "'%s': %m", file_name_short(path, name));
	r = file_meta_apply(m, fd, path, e);

	/* The way of old kernels, by name; below another root a symlink could lead out of it. */
	if (r == -EBADF && root->fd < 0 && fchmodat(place.dir_fd, place.name, m->mode, 0) == 0)
		return 0;
	return r;
}

static int make_directory(const struct file_root *root, const char *path, const struct file_meta *m,
			  struct err *e)
{
	osb_cleanup(fd_closep) int fd = file_root_make_dirs(root, path, e);

	return fd < 0 ? fd : file_meta_apply(m, fd, path, e);
}

static int parse_meta(struct meta_job *j, const struct json *value, struct file_meta *ret,
		      struct err *e)
{
	*ret = FILE_META_NONE;
	if (json_kind(value) == JSON_NULL)
		return 0;
	return file_meta_parse(value, &j->users, ret, e);
}

static enum file_job_next meta_step(struct file_job *job)
{
	struct meta_job *j = container_of(job, struct meta_job, job);
	osb_cleanup(arena_done) struct arena scratch;
	const struct json *value;
	struct err e = ERR_NONE;
	struct file_meta meta;
	const char *path;
	struct view key;

	arena_init(&scratch, SCRATCH_MAX);
	if (!json_next(j->body, &j->at, &key, &value)) {
		if (j->checked) {
			reply_empty(job->x);
			return FILE_JOB_DONE;
		}
		j->checked = true;
		j->at = NULL;
		return FILE_JOB_MORE;
	}
	if (file_root_path(&job->root, job->app, &scratch, key, &path, &e) < 0 ||
	    parse_meta(j, value, &meta, &e) < 0) {
		reply_bad_request(job->x, CODE_INVALID_REQUEST, &e);
		return FILE_JOB_DONE;
	}
	if (j->checked && (file_root_check_writable(&job->root, path, &e) < 0 ||
			   j->apply(&job->root, path, &meta, &e) < 0)) {
		reply_runtime_error(job->x, &e);
		return FILE_JOB_DONE;
	}
	return FILE_JOB_MORE;
}

/* `what`: the body, in the words of an error. */
static enum file_job_next take_body(struct file_job *job, struct view text, enum json_kind kind,
				    const char *what, struct json **ret)
{
	struct err e = ERR_NONE;

	if (json_parse(text, JSON_FIRST_VALUE, ret, &e) == 0 && json_kind(*ret) != kind)
		err_set(&e, -EINVAL, "the body must be %s, not %s", what,
			json_kind_name(json_kind(*ret)));
	if (e.code == 0)
		return FILE_JOB_MORE;
	reply_bad_request(job->x, CODE_INVALID_REQUEST, &e);
	return FILE_JOB_DONE;
}

static enum file_job_next meta_body(struct file_job *job, struct view body)
{
	struct meta_job *j = container_of(job, struct meta_job, job);

	return take_body(job, body, JSON_OBJECT, "an object of paths", &j->body);
}

static void meta_free(struct file_job *job)
{
	struct meta_job *j = container_of(job, struct meta_job, job);

	json_free(j->body);
	users_free(j->users);
	free(j);
}

static const struct file_job_ops meta_ops = {
	.body = meta_body,
	.body_max = BODY_MAX,
	.step = meta_step,
	.free = meta_free,
};

void files_permissions(struct app *app, struct http_exchange *x, const struct file_root *root)
{
	struct meta_job *j = mem_new(struct meta_job);

	j->apply = set_permissions;
	file_job_start(&j->job, &meta_ops, app, x, root);
}

void directories_create(struct app *app, struct http_exchange *x, const struct file_root *root)
{
	struct meta_job *j = mem_new(struct meta_job);

	j->apply = make_directory;
	file_job_start(&j->job, &meta_ops, app, x, root);
}

/* ---- POST /files/mv ---- */

struct mv_job {
	struct file_job job;
	struct json *body;
	size_t at;
};

/* Not every file system knows RENAME_NOREPLACE; then a look before it has to do. */
static int rename_new(const struct file_place *from, const struct file_place *to)
{
	struct stat st;

	if (renameat2(from->dir_fd, from->name, to->dir_fd, to->name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (fstatat(to->dir_fd, to->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(from->dir_fd, from->name, to->dir_fd, to->name) == 0 ? 0 : -errno;
}

/* *ret_missing tells whether it is the source that is not there. */
static int move(const struct file_root *root, const char *src, const char *dest, bool *ret_missing,
		struct err *e)
{
	osb_cleanup(file_place_done) struct file_place from = FILE_PLACE_NONE;
	osb_cleanup(file_place_done) struct file_place to = FILE_PLACE_NONE;
	char a[FILE_NAME_SHORT / 2 + 4], shown[FILE_NAME_SHORT];
	struct stat st;
	int r;

	r = file_root_check_writable(root, dest, e);
	if (r < 0)
		return r;
	r = file_root_place(root, src, &from, e);
	if (r == 0 && fstatat(from.dir_fd, from.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = err_set(e, -errno, "'%s': %m", file_name_short(src, shown));
	*ret_missing = r == -ENOENT || r == -ENOTDIR;
	if (r < 0)
		return r;
	r = file_root_make_parents(root, dest, e);
	if (r < 0)
		return r;
	r = file_root_place(root, dest, &to, e);
	if (r < 0)
		return r;

	r = rename_new(&from, &to);
	if (r == 0)
		return 0;
	snprintf(a, sizeof(a), "%.80s", file_name_short(src, shown));
	if (r == -EEXIST)
		return err_set(e, r, "'%s' exists already: '%s' was not moved",
			       file_name_short(dest, shown), a);
	if (r == -EXDEV)
		return err_set(e, r, "'%s' is on another file system than '%s'",
			       file_name_short(dest, shown), a);
	return err_set(e, r, "move '%s' to '%s': %s", a, file_name_short(dest, shown),
		       strerror(-r));
}

static int mv_field(struct mv_job *j, struct arena *a, const struct json *item, const char *field,
		    const char **ret, struct err *e)
{
	struct view text = VIEW_NONE;

	if (json_field_string(item, field, &text, e) < 0)
		return e->code;
	if (text.len == 0)
		return err_set(e, -EINVAL, "item %zu has no %s", j->at, field);
	return file_root_path(&j->job.root, j->job.app, a, text, ret, e);
}

static enum file_job_next mv_step(struct file_job *job)
{
	struct mv_job *j = container_of(job, struct mv_job, job);
	osb_cleanup(arena_done) struct arena scratch;
	const struct json *item = json_at(j->body, j->at);
	const char *src = NULL, *dest = NULL;
	struct err e = ERR_NONE;
	bool missing = false;

	arena_init(&scratch, SCRATCH_MAX);
	if (!item) {
		reply_empty(job->x);
		return FILE_JOB_DONE;
	}
	if (mv_field(j, &scratch, item, "src", &src, &e) < 0 ||
	    mv_field(j, &scratch, item, "dest", &dest, &e) < 0) {
		reply_bad_request(job->x, CODE_INVALID_REQUEST, &e);
		return FILE_JOB_DONE;
	}
	if (move(&job->root, src, dest, &missing, &e) < 0) {
		if (missing)
			reply_file_error(job->x, &e);
		else
			reply_runtime_error(job->x, &e);
		return FILE_JOB_DONE;
	}
	j->at++;
	return FILE_JOB_MORE;
}

static enum file_job_next mv_body(struct file_job *job, struct view body)
{
	struct mv_job *j = container_of(job, struct mv_job, job);

	return take_body(job, body, JSON_ARRAY, "an array of {src, dest}", &j->body);
}

static void mv_free(struct file_job *job)
{
	struct mv_job *j = container_of(job, struct mv_job, job);

	json_free(j->body);
	free(j);
}

void files_mv(struct app *app, struct http_exchange *x, const struct file_root *root)
{
	static const struct file_job_ops ops = {
		.body = mv_body,
		.body_max = BODY_MAX,
		.step = mv_step,
		.free = mv_free,
	};
	struct mv_job *j = mem_new(struct mv_job);

	file_job_start(&j->job, &ops, app, x, root);
}
