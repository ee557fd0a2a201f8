/*
 * execd/file_remove.c - DELETE /directories: whole trees, from fds alone, links never followed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "execd/errors.h"
#include "execd/file_job.h"
#include "execd/file_names.h"
#include "execd/file_walk.h"
#include "execd/files.h"
#include "net/http_server.h"

#define SCRATCH_MAX (256u << 10)

struct remove_job {
	struct file_job job;
	struct view rest;	 /* of the query */
	struct file_walk *walk;	 /* of the tree that is being removed, or NULL */
	struct file_place place; /* of that tree */
};

/* Whoever removed it before us did no harm. */
static int remove_name(int dir_fd, const char *name, int flags, struct view path, struct err *e)
{
	char text[FILE_NAME_SHORT];
	int at = path.len > 120 ? (int)path.len - 120 : 0;

	if (unlinkat(dir_fd, name, flags) == 0 || errno == ENOENT)
		return 0;
	/* It became something else since it was read: remove that. */
	if ((errno == ENOTDIR && flags) || (errno == EISDIR && !flags))
		if (unlinkat(dir_fd, name, flags ^ AT_REMOVEDIR) == 0)
			return 0;
	int code = -errno;

	memcpy(text, path.p + at, path.len - (size_t)at);
	text[path.len - (size_t)at] = '\0';
	return err_set(e, code, "delete '%s%s': %s", at ? "..." : "", text, strerror(-code));
}

/* Removes a file at once; of a directory the walk begins. */
static int remove_begin(struct remove_job *j, const char *path, struct err *e)
{
	char name[FILE_NAME_SHORT];
	int r, fd;

	r = file_root_check_writable(&j->job.root, path, e);
	if (r < 0)
		return r;
	r = file_root_place(&j->job.root, path, &j->place, e);
	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR ? 0 : r;
	if (strcmp(j->place.name, ".") == 0)
		return err_set(e, -EBUSY, "'%s' is not removed: it is the root or ends with '..'",
			       file_name_short(path, name));

	fd = openat(j->place.dir_fd, j->place.name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return remove_name(j->place.dir_fd, j->place.name,
				   errno == ENOTDIR || errno == ELOOP ? 0 : AT_REMOVEDIR,
				   view_of(path), e);
	return file_walk_open(fd, path, UINT_MAX, FILE_WALK_LEAVE | FILE_WALK_REMOVING, &j->walk,
			      e);
}

/* One entry of the tree; at its end the tree itself. */
static int remove_entry(struct remove_job *j, struct err *e)
{
	struct file_walk_entry entry;
	int r = file_walk_next(j->walk, &entry, e);

	if (r == -EAGAIN || (r > 0 && entry.kind == FILE_WALK_DIR))
		return 0;
	if (r > 0)
		return remove_name(entry.dir_fd, entry.name,
				   entry.kind == FILE_WALK_DIR_END ? AT_REMOVEDIR : 0, entry.path,
				   e);
	if (r < 0)
		return r;

	file_walk_close(take_ptr(j->walk));
	r = remove_name(j->place.dir_fd, j->place.name, AT_REMOVEDIR, view_of(j->place.name), e);
	file_place_done(&j->place);
	return r;
}

static int remove_next(struct remove_job *j, struct err *e)
{
	osb_cleanup(arena_done) struct arena scratch;
	const char *path;
	struct view text;
	int r;

	arena_init(&scratch, SCRATCH_MAX);
	file_place_done(&j->place);
	r = file_job_next_path(&j->job, &scratch, &j->rest, &text, &path, e);
	if (r > 0)
		r = remove_begin(j, path, e) < 0 ? e->code : 1;
	return r;
}

static enum file_job_next remove_step(struct file_job *job)
{
	struct remove_job *j = container_of(job, struct remove_job, job);
	struct err e = ERR_NONE;
	int r;

	if (j->walk)
		r = remove_entry(j, &e) < 0 ? e.code : 1;
	else
		r = remove_next(j, &e);
	if (r > 0)
		return FILE_JOB_MORE;
	if (r == 0)
		reply_empty(job->x);
	else if (r == -EINVAL)
		reply_bad_request(job->x, CODE_INVALID_REQUEST, &e);
	else
		reply_runtime_error(job->x, &e);
	return FILE_JOB_DONE;
}

static void remove_free(struct file_job *job)
{
	struct remove_job *j = container_of(job, struct remove_job, job);

	file_walk_close(j->walk);
	file_place_done(&j->place);
	free(j);
}

void directories_delete(struct app *app, struct http_exchange *x, const struct file_root *root)
{
	static const struct file_job_ops ops = {.step = remove_step, .free = remove_free};
	struct remove_job *j = mem_new(struct remove_job);

	j->rest = http_query(x);
	j->place = FILE_PLACE_NONE;
	file_job_start(&j->job, &ops, app, x, root);
}
