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
struct file_job;
struct http_exchange;
struct loop_task;

enum file_job_next {
	FILE_JOB_MORE, /* call again, maybe in a later turn */
	FILE_JOB_WAIT, /* call again when the client has taken what was written */
	FILE_JOB_DONE, /* the exchange was answered */
};

struct file_job_ops {
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
	bool stepping;
	bool gone;
};

/*
 * Starts the first turn at once.  Takes the job: it is freed when done or when the client leaves,
 * perhaps before this returns.
 */
void file_job_start(struct file_job *j, const struct file_job_ops *ops, struct app *app,
		    struct http_exchange *x, const struct file_root *root);

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
