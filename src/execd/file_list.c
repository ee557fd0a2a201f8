/*
 * execd/file_list.c - GET /directories/list and GET /files/search: a tree as a list of facts.
 *
 * What vanishes while the tree is walked is left out, and so is what lies in directories that may
 * not be read.  The answer leaves as it grows.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/glob.h"
#include "codec/url.h"
#include "execd/errors.h"
#include "execd/file_info.h"
#include "execd/file_job.h"
#include "execd/file_names.h"
#include "execd/file_walk.h"
#include "execd/files.h"
#include "net/http_server.h"

struct list_job {
	struct file_job job;
	const char *path;    /* in the request's arena */
	struct view pattern; /* of a search; p is NULL in a listing */
	unsigned depth;
	bool begun;
	struct file_walk *walk; /* NULL when there is nothing to walk */
	struct file_answer answer;
	struct file_owners owners;
};

static bool is_search(const struct list_job *j)
{
	return j->pattern.p != NULL;
}

static bool wanted(const struct list_job *j, const struct stat *st)
{
	return !is_search(j) || S_ISREG(st->st_mode) || S_ISLNK(st->st_mode);
}

/* The root of a listing is a directory, and not by way of a symlink. */
static int open_listed(struct list_job *j, struct err *e)
{
	osb_cleanup(file_place_done) struct file_place place = FILE_PLACE_NONE;
	char name[FILE_NAME_SHORT];
	struct stat st;
	int r, fd;

	r = file_root_place(&j->job.root, j->path, &place, e);
	if (r < 0)
		return r;
	file_name_short(j->path, name);
	if (fstatat(place.dir_fd, place.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "'%s': %m", name);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, -EINVAL, "'%s' is %s, not a directory", name,
			       S_ISLNK(st.st_mode) ? "a symlink" : "a file");
	if (j->depth == 0)
		return 0;

	fd = openat(place.dir_fd, place.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open '%s': %m", name);
	return file_walk_open(fd, j->path, j->depth, 0, &j->walk, e);
}

/* The root of a search may be a file: then it is all that is looked at. */
static int search_file(struct list_job *j, struct err *e)
{
	osb_cleanup(file_place_done) struct file_place place = FILE_PLACE_NONE;
	char name[FILE_NAME_SHORT];
	struct stat st;
	int r;

	r = file_root_place(&j->job.root, j->path, &place, e);
	if (r < 0)
		return r;
	if (fstatat(place.dir_fd, place.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "'%s': %m", file_name_short(j->path, name));
	if (wanted(j, &st) && glob_match(j->pattern, view_of(place.name)))
		file_info_write(&j->answer.w, view_of(j->path), &st, &j->owners);
	return 0;
}

static int open_searched(struct list_job *j, struct err *e)
{
	int fd = file_root_open(&j->job.root, j->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, e);

	if (fd == -ENOTDIR)
		return search_file(j, e);
	if (fd < 0)
		return fd;
	return file_walk_open(fd, j->path, UINT_MAX, 0, &j->walk, e);
}

static enum file_job_next list_begin(struct list_job *j)
{
	struct err e = ERR_NONE;
	int r;

	j->begun = true;
	json_write_array(&j->answer.w);
	r = is_search(j) ? open_searched(j, &e) : open_listed(j, &e);
	if (r < 0)
		return file_answer_fail(&j->answer, j->job.x, &e);
	if (is_search(j) && !glob_valid(j->pattern)) {
		err_set(&e, -EDOM, "the pattern '%.*s' is malformed",
			(int)MIN(j->pattern.len, (size_t)120), j->pattern.p);
		return file_answer_fail(&j->answer, j->job.x, &e);
	}
	return FILE_JOB_MORE;
}

static enum file_job_next list_step(struct file_job *job)
{
	struct list_job *j = container_of(job, struct list_job, job);
	struct file_walk_entry entry;
	struct err e = ERR_NONE;
	struct stat st;
	int r;

	if (!j->begun)
		return list_begin(j);

	r = j->walk ? file_walk_next(j->walk, &entry, &e) : 0;
	if (r == -EAGAIN)
		return FILE_JOB_MORE;
	if (r < 0)
		return file_answer_fail(&j->answer, job->x, &e);
	if (r == 0) {
		json_write_array_end(&j->answer.w);
		return file_answer_end(&j->answer, job->x);
	}
	if (is_search(j) && (!entry.may_match || !glob_match(j->pattern, view_of(entry.name))))
		return FILE_JOB_MORE;
	if (fstatat(entry.dir_fd, entry.name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !wanted(j, &st))
		return FILE_JOB_MORE;
	file_info_write(&j->answer.w, entry.path, &st, &j->owners);
	return file_answer_flush(&j->answer, job->x);
}

static void list_free(struct file_job *job)
{
	struct list_job *j = container_of(job, struct list_job, job);

	file_walk_close(j->walk);
	file_answer_done(&j->answer);
	file_owners_done(&j->owners);
	free(j);
}

static void list_start(struct app *app, struct http_exchange *x, const struct file_root *root,
		       const char *path, struct view pattern, unsigned depth)
{
	static const struct file_job_ops ops = {.step = list_step, .free = list_free};
	struct list_job *j = mem_new(struct list_job);

	j->path = path;
	j->pattern = pattern;
	j->depth = depth;
	file_answer_init(&j->answer);
	file_owners_init(&j->owners);
	file_job_start(&j->job, &ops, app, x, root);
}

/* A query parameter that may be absent; false when the query was refused. */
static bool query(struct http_exchange *x, const char *name, struct view *ret)
{
	if (url_query_get(http_arena(x), http_query(x), name, ret) >= 0)
		return true;
	http_reply_error(x, 400, CODE_INVALID_REQUEST, "the query is malformed");
	return false;
}

/* The path that both routes need. */
static bool query_path(struct app *app, struct http_exchange *x, const struct file_root *root,
		       const char **ret)
{
	struct view text = VIEW_NONE;
	struct err e = ERR_NONE;

	if (!query(x, "path", &text))
		return false;
	if (text.len == 0) {
		http_reply_error(x, 400, CODE_MISSING_QUERY,
				 "the query parameter 'path' is missing");
		return false;
	}
	if (file_root_path(root, app, http_arena(x), text, ret, &e) < 0) {
		reply_file_error(x, &e);
		return false;
	}
	return true;
}

void directories_list(struct app *app, struct http_exchange *x, const struct file_root *root)
{
	struct view text = VIEW_NONE;
	uint32_t depth = 1;
	const char *path;

	if (!query_path(app, x, root, &path) || !query(x, "depth", &text))
		return;
	if (text.len > 0 && !num_parse_u32(text, &depth)) {
		http_reply_error(x, 400, CODE_INVALID_REQUEST,
				 "depth must be a number of levels, 0 or more");
		return;
	}
	list_start(app, x, root, path, VIEW_NONE, depth);
}

void files_search(struct app *app, struct http_exchange *x, const struct file_root *root)
{
	struct view pattern = VIEW_NONE;
	const char *path;

	if (!query_path(app, x, root, &path) || !query(x, "pattern", &pattern))
		return;
	if (pattern.len == 0)
		pattern = VIEW("**");
	if (file_name_unescape(http_arena(x), pattern, &pattern) < 0) {
		http_reply_error(x, 400, CODE_INVALID_REQUEST, "the pattern is too long");
		return;
	}
	list_start(app, x, root, path, pattern, 0);
}
