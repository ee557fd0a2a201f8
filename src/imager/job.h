/*
 * imager/job.h - the conversation with whoever asked: JSON objects, one a line, over one socket.
 *
 * The request comes first; progress, and at last one "done" or "failed", go back.  A job whose
 * asker is gone ends at once: every job can be repeated.
 */
#pragma once

#include "base/macro.h"

struct buf;
struct err;
struct json;
struct json_writer;

#define JOB_FD	   3 /* the socket */
#define JOB_DIR_FD 4 /* the directory that the job works in */

struct job {
	int fd;
	struct json *request; /* an object */
};

/* Takes the socket, and arranges that the process ends when the other side closes it. */
osb_must_check int job_open(struct job *j, int fd, struct err *e);

/* Waits for the request. */
osb_must_check int job_read(struct job *j, struct err *e);
/* {"ready":{}}; waits until the asker says that it may begin. */
osb_must_check int job_wait(struct job *j, struct err *e);
void job_close(struct job *j);

/*
 * Sends one object, waiting for room.  A failure is not reported: the asker is gone, and with it
 * the job.
 */
void job_send(struct job *j, struct buf *line);

/* The same for what may be left out: nothing is sent when there is no room for all of it. */
void job_send_if_room(struct job *j, struct buf *line);

/* {"done":{}} */
void job_done(struct job *j);

/* {"failed":{"code":...,"message":...}}; the only place where an errno becomes a code. */
void job_failed(struct job *j, const struct err *e);
