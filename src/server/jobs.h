/*
 * server/jobs.h - work that the worker has no rights for, done by `opensandbox-image`.
 *
 * A job is a program with a socket: it gets one JSON object, tells of its progress in JSON objects,
 * one a line, and ends with `done` or `failed`.  The supervisor starts it.  At most so many of a
 * kind run at once, the others wait for their turn.  Everything comes from the loop, never from
 * inside a call; after job_cancel() nothing comes.  Whoever needs a lost job starts it again: every
 * job can be repeated.  When the supervisor has gone, nothing comes: the worker is about to end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct job;
struct jobs;
struct json;
struct loop;

enum job_kind {
	JOB_FETCH,  /* from a registry */
	JOB_PUSH,   /* to a registry */
	JOB_HEAVY,  /* files, and it may take long: unpack, import, seed, remove, clean */
	JOB_OUT,    /* files, for minutes, and pulls must not wait for it: pack, export */
	JOB_QUICK,  /* files, and somebody waits for it: capture, a volume's making or size */
	JOB_BUCKET, /* mounts of object stores */
	JOB_KINDS_
};

/* `code` of a failure: the job's own, as docs/internals/images.md lists them, or one of these. */
#define JOB_CODE_LOST "LOST" /* the program ended without a word, or could not be started */
#define JOB_CODE_BUSY "BUSY" /* too many wait already */

#define JOB_LINE_MAX	((size_t)10 << 20)
#define JOB_REQUEST_MAX ((size_t)4 << 20)

struct job_events {
	/* Anything but the end: `name` is "progress", "manifest"...; may be NULL: not interested.
	 */
	void (*news)(void *arg, struct view name, const struct json *value);
	/* One of these comes once; the job is gone by then.  `result` is an object. */
	void (*done)(void *arg, const struct json *result);
	void (*failed)(void *arg, const char *code, const char *message);
};

struct jobs *jobs_new(struct loop *l, int supervisor_fd); /* borrowed */
void jobs_free(struct jobs *j);				  /* accepts NULL; cancels what is left */

/* `request` is a JSON object without a newline; it is copied, and wiped when it was sent. */
struct job *job_start(struct jobs *j, enum job_kind kind, struct view request,
		      const struct job_events *events, void *arg);
/* One more line, for a job that waits for it. */
void job_say(struct job *job, struct view line);
void job_cancel(struct job *job); /* accepts NULL; a program that runs is told by a closed socket */

/* "sha256:..." in a job's answer; `ret` has room for IMAGE_REF_DIGEST_LEN and a NUL. */
osb_must_check bool job_digest(const struct json *v, const char *key, char *ret);
