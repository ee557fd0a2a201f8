/*
 * server/jobs.c - queues of jobs, their sockets, their answers.
 */
#include "server/jobs.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/image_ref.h"
#include "codec/json.h"
#include "net/loop.h"
#include "net/sendq.h"
#include "sys/seqpacket.h"

#define WAITING_MAX 4096
#define RETRY_MS    50 /* when the supervisor has not read what it was sent */
#define READ_BYTES  65536
#define MESSAGE_MAX 240

struct kind {
	const char *request; /* to the supervisor */
	unsigned at_once;
};

static const struct kind kinds[JOB_KINDS_] = {
	[JOB_FETCH] = {"job fetch", 4}, [JOB_PUSH] = {"job push", 2},
	[JOB_HEAVY] = {"job files", 3}, [JOB_QUICK] = {"job files", 12},
	[JOB_OUT] = {"job files", 2},	[JOB_BUCKET] = {"job bucket", 4},
};

struct job {
	struct list link; /* in `waiting` or `running` of its kind */
	struct jobs *jobs;
	enum job_kind kind;
	const struct job_events *events;
	void *arg;
	struct sendq out;
	struct buf in;
	size_t searched; /* of `in`, for the end of a line */
	int fd;		 /* -1 until it is started */
	struct loop_fd *watch;
	bool *gone; /* set when the job is freed inside a callback */
	bool refused;
};

struct jobs {
	struct loop *loop;
	int supervisor_fd;
	struct list waiting[JOB_KINDS_], running[JOB_KINDS_];
	unsigned waiting_n, running_n[JOB_KINDS_];
	struct loop_task *next; /* starts what may start */
	struct loop_timer *retry;
};

/* ---- the end of a job ---- */

static void wipe(struct buf *b)
{
	if (b->mem)
		explicit_bzero(b->mem, b->cap);
	buf_done(b);
}

static void job_free(struct job *job)
{
	struct jobs *j = job->jobs;

	if (job->gone)
		*job->gone = true;
	list_remove(&job->link);
	if (job->fd >= 0)
		j->running_n[job->kind]--;
	else
		j->waiting_n--;
	loop_fd_free(job->watch);
	fd_close(job->fd);
	wipe(&job->out.buf);
	buf_done(&job->in);
	free(job);
	loop_task_post(j->next);
}

void job_cancel(struct job *job)
{
	if (job)
		job_free(job);
}

static void fail(struct job *job, const char *code, const char *message)
{
	const struct job_events *events = job->events;
	void *arg = job->arg;

	job_free(job);
	events->failed(arg, code, message);
}

/* ---- answers ---- */

static void take_failure(struct job *job, const struct json *v)
{
	struct view code = VIEW("INTERNAL"), message = VIEW("the job gave no reason");
	char code_text[32], text[MESSAGE_MAX];

	(void)json_str(json_get(v, "code"), &code);
	(void)json_str(json_get(v, "message"), &message);
	snprintf(code_text, sizeof(code_text), VIEW_FMT, VIEW_ARG(view_first(code, 31)));
	snprintf(text, sizeof(text), VIEW_FMT, VIEW_ARG(view_first(message, MESSAGE_MAX - 1)));
	fail(job, code_text, text);
}

/* False when the job is gone. */
static bool take_line(struct job *job, struct view line)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	const struct json *member;
	struct err e = ERR_NONE;
	struct view name;
	void *it = NULL;
	bool gone = false;

	if (json_parse(line, 0, &v, &e) < 0 || json_len(v) != 1 ||
	    !json_next(v, &it, &name, &member)) {
		fail(job, "INTERNAL", "the job answered with something that is no message");
		return false;
	}
	if (view_is(name, "failed")) {
		take_failure(job, member);
		return false;
	}
	if (view_is(name, "done")) {
		const struct job_events *events = job->events;
		void *arg = job->arg;

		job_free(job);
		events->done(arg, member);
		return false;
	}
	if (!job->events->news)
		return true;
	job->gone = &gone;
	job->events->news(job->arg, name, member);
	if (!gone)
		job->gone = NULL;
	return !gone;
}

static bool take_lines(struct job *job)
{
	for (;;) {
		struct view in = buf_view(&job->in);
		const char *end = in.len > job->searched ? memchr(in.p + job->searched, '\n',
								  in.len - job->searched)
							 : NULL;

		if (!end) {
			job->searched = in.len;
			return true;
		}
		if (!take_line(job, view_mem(in.p, (size_t)(end - in.p))))
			return false;
		buf_consume(&job->in, (size_t)(end - in.p) + 1);
		job->searched = 0;
	}
}

/* Jobs die with the supervisor, and so do we, in a moment: nothing of it must look like a failure
 * of what was asked for. */
static bool supervisor_gone(const struct jobs *j)
{
	struct pollfd p = {.fd = j->supervisor_fd};

	return poll(&p, 1, 0) > 0 && (p.revents & POLLHUP);
}

static void on_readable(struct job *job)
{
	char *p = buf_reserve(&job->in, READ_BYTES);
	ssize_t n;

	if (!p) {
		fail(job, "INTERNAL", "the job answered with a line that does not end");
		return;
	}
	n = read(job->fd, p, READ_BYTES);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 && supervisor_gone(job->jobs)) {
		loop_fd_want(job->watch, 0);
		return;
	}
	if (n <= 0) {
		fail(job, JOB_CODE_LOST, "the program that did it has died; try again");
		return;
	}
	buf_commit(&job->in, (size_t)n);
	(void)take_lines(job);
}

static void on_ready(void *arg, int fd, unsigned events)
{
	struct job *job = arg;

	if (events & LOOP_WRITE) {
		ssize_t n = sendq_flush(&job->out, fd);

		/* What went wrong shows when it is read. */
		if (n < 0 && n != -EAGAIN)
			buf_clear(&job->out.buf);
		if (sendq_len(&job->out) == 0) {
			wipe(&job->out.buf);
			loop_fd_want(job->watch, LOOP_READ);
		}
	}
	if (events & LOOP_READ)
		on_readable(job);
}

bool job_digest(const struct json *v, const char *key, char *ret)
{
	struct view text;

	if (!json_str(json_get(v, key), &text) || !image_ref_digest_valid(text))
		return false;
	memcpy(ret, text.p, text.len);
	ret[text.len] = '\0';
	return true;
}

/* ---- the beginning of a job ---- */

/* 0, -EAGAIN when the supervisor has no room, or -errno. */
static int launch(struct jobs *j, struct job *job, struct err *e)
{
	osb_cleanup(fd_closep) int theirs = -1;
	int ends[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(e, -errno, "socketpair: %m");
	theirs = ends[1];
	r = seqpacket_send(j->supervisor_fd, view_of(kinds[job->kind].request), &theirs, 1, e);
	if (r == 0)
		r = loop_fd_new(j->loop, ends[0], on_ready, job, &job->watch, e);
	if (r < 0) {
		fd_close(ends[0]);
		return r;
	}
	job->fd = ends[0];
	j->waiting_n--;
	j->running_n[job->kind]++;
	list_remove(&job->link);
	list_push_back(&j->running[job->kind], &job->link);
	loop_fd_want(job->watch, LOOP_READ | LOOP_WRITE);
	return 0;
}

static void start_next(void *arg)
{
	struct jobs *j = arg;

	for (int kind = 0; kind < JOB_KINDS_; kind++) {
		while (!list_empty(&j->waiting[kind])) {
			struct job *job = list_entry(j->waiting[kind].next, struct job, link);
			struct err e = ERR_NONE;
			int r;

			if (job->refused) {
				fail(job, JOB_CODE_BUSY, "too many jobs wait already");
				continue;
			}
			if (j->running_n[kind] >= kinds[kind].at_once)
				break;
			r = launch(j, job, &e);
			if (r < 0 && supervisor_gone(j))
				return;
			if (r == -EAGAIN) {
				loop_timer_start(j->retry, RETRY_MS);
				return;
			}
			if (r < 0)
				fail(job, JOB_CODE_LOST, e.msg);
		}
	}
}

struct job *job_start(struct jobs *j, enum job_kind kind, struct view request,
		      const struct job_events *events, void *arg)
{
	struct job *job = mem_new(struct job);

	job->jobs = j;
	job->kind = kind;
	job->events = events;
	job->arg = arg;
	job->fd = -1;
	buf_init(&job->in, JOB_LINE_MAX + READ_BYTES);
	sendq_init(&job->out, JOB_REQUEST_MAX);
	job->refused = j->waiting_n >= WAITING_MAX || buf_append_view(&job->out.buf, request) < 0 ||
		       buf_append_char(&job->out.buf, '\n') < 0;
	j->waiting_n++;
	/* A refusal need not wait for its turn. */
	if (job->refused)
		list_push_front(&j->waiting[kind], &job->link);
	else
		list_push_back(&j->waiting[kind], &job->link);
	loop_task_post(j->next);
	return job;
}

void job_say(struct job *job, struct view line)
{
	/* A job that takes nothing any more shows when it is read. */
	if (buf_append_view(&job->out.buf, line) < 0 || buf_append_char(&job->out.buf, '\n') < 0)
		return;
	if (job->watch)
		loop_fd_want(job->watch, LOOP_READ | LOOP_WRITE);
}

/* ---- the queues ---- */

struct jobs *jobs_new(struct loop *l, int supervisor_fd)
{
	struct jobs *j = mem_new(struct jobs);

	j->loop = l;
	j->supervisor_fd = supervisor_fd;
	for (int kind = 0; kind < JOB_KINDS_; kind++) {
		list_init(&j->waiting[kind]);
		list_init(&j->running[kind]);
	}
	j->next = loop_task_new(l, start_next, j);
	j->retry = loop_timer_new(l, start_next, j);
	return j;
}

void jobs_free(struct jobs *j)
{
	if (!j)
		return;
	for (int kind = 0; kind < JOB_KINDS_; kind++) {
		list_each_safe (it, next, &j->waiting[kind])
			job_free(list_entry(it, struct job, link));
		list_each_safe (it, next, &j->running[kind])
			job_free(list_entry(it, struct job, link));
	}
	loop_task_free(j->next);
	loop_timer_free(j->retry);
	free(j);
}
