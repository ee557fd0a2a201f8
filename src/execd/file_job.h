/*
 * execd/file_job.h - long file work in short turns of the loop.
 *
 * A job is worked on in steps, for a few milliseconds a turn, until it has answered its exchange.
 * Others are served in between.  When the client leaves, the work stops where it is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "codec/json_writer.h"
#include "execd/file_root.h"

struct app;
struct arena;
struct err;
struct file_job;
struct http_exchange;
struct loop_task;

enum file_job_next {
	FILE_JOB_MORE, /* call again, maybe in a later turn */
	FILE_JOB_WAIT, /* call again when the client has taken what was written */
	FILE_JOB_DONE, /* the exchange was answered */
};

struct file_job_ops {
	/* Optional: begins with the whole body, `body_max` bytes at most (413 above). */
	enum file_job_next (*body)(struct file_job *j, struct view body);
	size_t body_max;
	enum file_job_next (*step)(struct file_job *j); /* well under a millisecond */
	void (*free)(struct file_job *j);		/* of what embeds the job */
};

/* The first member of the struct of each kind of job. */
struct file_job {
	const struct file_job_ops *ops;
	struct app *app;
	struct http_exchange *x;
	struct loop_task *task;
	struct file_root root; /* its own copy */
	struct buf body;
	size_t dropped; /* of a body that is too long */
	bool stepping;
	bool gone;
};

/*
 * Waits for the body if the job wants one, else starts the first turn at once.  Takes the job: it
 * is freed when done or when the client leaves, perhaps before this returns.
 */
void file_job_start(struct file_job *j, const struct file_job_ops *ops, struct app *app,
		    struct http_exchange *x, const struct file_root *root);

/* Answers with the error, by execd/errors.h's table. */
enum file_job_next file_job_fail(struct file_job *j, const struct err *e);

/*
 * The next `path` of a query: 1, its text (decoded) and the path it stands for, all in the arena;
 * 0 at the end; -EINVAL with a sentence.
 */
osb_must_check int file_job_next_path(struct file_job *j, struct arena *a, struct view *rest,
				      struct view *ret_text, const char **ret_path, struct err *e);

/* A JSON answer of any length: small ones leave whole, large ones piece by piece. */
struct file_answer {
	struct buf out;
	struct json_writer w;
	bool begun;
};

void file_answer_init(struct file_answer *a);
void file_answer_done(struct file_answer *a);

/* Sends what has gathered if it is much.  FILE_JOB_WAIT when the client is slower than we are. */
enum file_job_next file_answer_flush(struct file_answer *a, struct http_exchange *x);

/* Ends the answer; everything in the writer is closed. */
enum file_job_next file_answer_end(struct file_answer *a, struct http_exchange *x);

/*
 * Ends it with a failure: an error answer when nothing has left yet, else a JSON text that breaks
 * off, so that no reader takes it for complete.
 */
enum file_job_next file_answer_fail(struct file_answer *a, struct http_exchange *x,
				    const struct err *e);
