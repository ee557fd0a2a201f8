/*
 * execd/file_job.c - turns, steps, and answers that leave in pieces.
 */
#include "execd/file_job.h"

#include <errno.h>

#include "base/clock.h"
#include "base/err.h"
#include "codec/url.h"
#include "execd/app.h"
#include "execd/errors.h"
#include "net/http_server.h"
#include "net/loop.h"

#define TURN_US	       4000
#define ANSWER_PIECE   (64u << 10)
#define DROP_MAX       (16u << 20)
#define ANSWER_CEILING (4u << 20) /* one step adds far less */

static void job_free(struct file_job *j)
{
	loop_task_free(j->task);
	buf_done(&j->body);
	file_root_done(&j->root);
	j->ops->free(j);
}

static void job_turn(void *arg)
{
	struct file_job *j = arg;
	uint64_t end_us = clock_mono_us() + TURN_US;
	enum file_job_next next;

	j->stepping = true;
	do
		next = j->ops->step(j);
	while (next == FILE_JOB_MORE && !j->gone && clock_mono_us() < end_us);
	j->stepping = false;

	if (next == FILE_JOB_DONE || j->gone)
		job_free(j);
	else if (next == FILE_JOB_MORE)
		loop_task_post(j->task);
}

static void job_drained(struct http_exchange *x, void *arg)
{
	struct file_job *j = arg;

	loop_task_post(j->task);
}

static void job_gone(struct http_exchange *x, void *arg)
{
	struct file_job *j = arg;

	j->gone = true;
	if (!j->stepping)
		job_free(j);
}

static void too_long(struct file_job *j)
{
	struct err e = ERR_NONE;

	err_set(&e, -E2BIG, "the body has more than %zu bytes", j->ops->body_max);
	reply_bad_request(j->x, CODE_INVALID_REQUEST, &e);
	job_free(j);
}

/*
 * Gathers the body here instead of letting the server do it, because the job has to be freed when
 * the body is too long; what is too much is dropped, so that the client comes to read the answer.
 */
static void job_body(struct http_exchange *x, struct view piece, void *arg)
{
	struct file_job *j = arg;
	enum file_job_next next;

	if (piece.len > 0) {
		if (j->dropped == 0 && buf_append_view(&j->body, piece) == 0)
			return;
		buf_done(&j->body);
		j->dropped += piece.len;
		if (j->dropped > DROP_MAX)
			too_long(j);
		return;
	}
	if (j->dropped > 0) {
		too_long(j);
		return;
	}
	next = j->ops->body(j, buf_view(&j->body));
	if (next == FILE_JOB_DONE) {
		job_free(j);
		return;
	}
	buf_done(&j->body);
	job_turn(j);
}

void file_job_start(struct file_job *j, const struct file_job_ops *ops, struct app *app,
		    struct http_exchange *x, const struct file_root *root)
{
	struct err e = ERR_NONE;

	j->ops = ops;
	j->app = app;
	j->x = x;
	j->task = loop_task_new(app->loop, job_turn, j);
	j->root = file_root_real;
	buf_init(&j->body, ops->body_max);
	if (file_root_copy(root, &j->root, &e) < 0) {
		reply_runtime_error(x, &e);
		job_free(j);
		return;
	}
	http_on_gone(x, job_gone, j);
	http_on_drained(x, job_drained, j);
	if (ops->body)
		http_body_stream(x, job_body, j);
	else
		job_turn(j);
}

enum file_job_next file_job_fail(struct file_job *j, const struct err *e)
{
	reply_file_error(j->x, e);
	return FILE_JOB_DONE;
}

int file_job_next_path(struct file_job *j, struct arena *a, struct view *rest,
		       struct view *ret_text, const char **ret_path, struct err *e)
{
	struct view name;
	int r;

	do {
		r = url_query_next(a, rest, &name, ret_text);
		if (r < 0)
			return err_set(e, -EINVAL, "the query is malformed");
		if (r == 0)
			return 0;
	} while (!view_is(name, "path"));

	r = file_root_path(&j->root, j->app, a, *ret_text, ret_path, e);
	return r < 0 ? r : 1;
}

void file_answer_init(struct file_answer *a)
{
	*a = (struct file_answer){.out = BUF_INIT(ANSWER_CEILING)};
	json_writer_init(&a->w, &a->out);
}

void file_answer_done(struct file_answer *a)
{
	buf_done(&a->out);
}

enum file_job_next file_answer_flush(struct file_answer *a, struct http_exchange *x)
{
	bool more;

	if (a->out.len < ANSWER_PIECE)
		return FILE_JOB_MORE;
	if (!a->begun) {
		http_reply_header(x, "Content-Type", VIEW("application/json"));
		http_reply_begin(x, 200, /* length= */ -1);
		a->begun = true;
	}
	more = http_reply_write(x, buf_view(&a->out));
	buf_clear(&a->out);
	return more ? FILE_JOB_MORE : FILE_JOB_WAIT;
}

enum file_job_next file_answer_end(struct file_answer *a, struct http_exchange *x)
{
	struct err e = ERR_NONE;

	if (json_writer_end(&a->w) < 0) {
		err_set(&e, -E2BIG, "one entry of the answer is too long to be written");
		return file_answer_fail(a, x, &e);
	}
	if (!a->begun) {
		http_reply(x, 200, "application/json", buf_view(&a->out));
		return FILE_JOB_DONE;
	}
	(void)http_reply_write(x, buf_view(&a->out)); /* the end follows, full or not */
	http_reply_end(x);
	return FILE_JOB_DONE;
}

enum file_job_next file_answer_fail(struct file_answer *a, struct http_exchange *x,
				    const struct err *e)
{
	if (a->begun)
		http_reply_end(x);
	else
		reply_file_error(x, e);
	return FILE_JOB_DONE;
}
