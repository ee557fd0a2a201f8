/*
 * execd/shell.c - the persistent shell of a session.
 *
 * The end of a run is told on the control channel after everything the run printed has been put
 * into the output pipe; so exactly the bytes that are in the pipe at that moment belong to the
 * run, and a background job that goes on printing cannot keep it open.
 */
#include "execd/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/strv.h"
#include "execd/app.h"
#include "execd/process.h"
#include "net/loop.h"

#define STATE_MAX    ((size_t)1 << 20)
#define SCRIPT_MAX   (4 * SHELL_COMMAND_MAX + STATE_MAX + 65536)
#define CHUNK	     65536
#define READS_A_TURN 16
#define PIPE_BYTES   (1 << 20)
#define INTERRUPT_MS 1000 /* from SIGINT to SIGKILL */
#define CAPTURE_MS   5000 /* for a shell that is asked to tell its state, before it is killed */

struct shell_run {
	struct shell *shell;
	struct list link;
	struct shell_job job; /* the callbacks; NULL once abandoned */
	struct buf command;
	char *cwd;
	struct strv envs;
	uint64_t seq;
	uint64_t started_us;
	enum shell_cause cause; /* why it will end, as far as known */
	bool active;		/* handed to the shell */
	bool blocked;		/* its listener wants no more output now */
	bool ending;		/* its end is known; `rest` bytes of output are still to come */
	size_t rest;
	struct shell_end end;
};

struct shell {
	struct app *app;
	const struct shell_host *host;
	void *arg;
	enum shell_kind kind;
	bool running; /* the process lives */
	int control;  /* our end of the socket, or -1 */
	int output[2];
	struct loop_fd *control_watch;
	struct loop_fd *output_watch;
	struct loop_timer *timer; /* the run's timeout, then the grace of its interrupt */
	struct loop_task *next;	  /* starts the next run with an empty stack */
	struct buf script;	  /* not yet taken by the socket */
	struct buf frames;	  /* a frame that is still incomplete */
	bool capturing;		  /* a run has ended, and what it left is still being told */
	bool interrupt_waits;	  /* for that, or the run before would have left nothing */
	struct shell *follows;	  /* whose state we shall begin with, once it is known */
	struct list followers, follower;
	bool skipping; /* the rest of a frame that was too long */
	char *cwd;
	struct buf state;
	struct buf new_state;
	char *new_cwd;
	struct list queue;
	size_t queued;
	struct shell_run *run; /* the one that is active, or NULL */
	uint64_t seq;
};

static void run_free(struct shell_run *r)
{
	list_remove(&r->link);
	buf_done(&r->command);
	strv_done(&r->envs);
	free(r->cwd);
	free(r);
}

/* Tells the end, once, and forgets the run. */
static void run_end(struct shell_run *r)
{
	struct shell *s = r->shell;
	struct shell_job job = r->job;
	struct shell_end end = r->end;

	end.cause = r->cause;
	if (end.cause != SHELL_ENDED)
		end.code = -1;
	if (s->run == r)
		s->run = NULL;
	else
		s->queued--;
	run_free(r);
	if (job.done)
		job.done(job.arg, &end);
}

static void watch_output(struct shell *s)
{
	loop_fd_want(s->output_watch, s->run && s->run->blocked ? 0 : LOOP_READ);
}

static void active_ended(struct shell *s)
{
	struct shell_run *r = s->run;

	loop_timer_stop(s->timer);
	r->end.time_us = clock_mono_us() - r->started_us;
	run_end(r);
	watch_output(s);
	if (!list_empty(&s->queue))
		loop_task_post(s->next);
}

static void deliver(struct shell_run *r, struct view bytes)
{
	if (r->job.output && !r->job.output(r->job.arg, bytes))
		r->blocked = true;
}

/* Reads what the pipe has, for the run or for nobody.  Returns false when there is nothing now. */
static bool pump_output(struct shell *s)
{
	char chunk[CHUNK];
	struct shell_run *r = s->run;
	size_t want = sizeof(chunk);
	ssize_t n;

	if (r && r->ending)
		want = MIN(want, r->rest);
	if (want > 0) {
		n = read(s->output[0], chunk, want);
		if (n <= 0 && !(r && r->ending))
			return false;
		if (r && n > 0)
			deliver(r, view_mem(chunk, (size_t)n));
		/* What was counted cannot vanish; if the pipe fails all the same, the run ends. */
		if (r && r->ending)
			r->rest = n > 0 ? r->rest - (size_t)n : 0;
	}
	if (r && r->ending && r->rest == 0) {
		active_ended(s);
		return false;
	}
	return !(r && r->blocked);
}

static void on_output(void *arg, int fd, unsigned events)
{
	struct shell *s = arg;

	for (int i = 0; i < READS_A_TURN; i++)
		if (!pump_output(s))
			break;
	watch_output(s);
}

/* The run is over; what it printed is in the pipe already. */
static void run_is_ending(struct shell *s, int code)
{
	struct shell_run *r = s->run;
	int n = 0;

	r->ending = true;
	r->end.code = code;
	loop_timer_stop(s->timer);
	if (ioctl(s->output[0], FIONREAD, &n) == 0 && n > 0)
		r->rest = (size_t)n;
	/* With something left the watch goes on, at the pace of the listener. */
	if (r->rest == 0)
		active_ended(s);
	else
		watch_output(s);
}

static void copy_state(struct shell *to, const struct shell *from)
{
	free(to->cwd);
	to->cwd = mem_strdup(from->cwd);
	buf_clear(&to->state);
	/* Both have the same ceiling. */
	(void)!buf_append_view(&to->state, buf_view(&from->state));
}

static void send_interrupt(struct shell *s)
{
	s->interrupt_waits = false;
	s->host->signal(s->arg, SIGINT);
	loop_timer_start(s->timer, INTERRUPT_MS);
}

static void interrupt(struct shell *s, enum shell_cause cause)
{
	s->run->cause = cause;
	s->interrupt_waits = s->capturing;
	if (s->capturing)
		loop_timer_start(s->timer, CAPTURE_MS);
	else
		send_interrupt(s);
}

/* Whoever waits to begin with our state gets it now. */
static void capture_ended(struct shell *s)
{
	s->capturing = false;
	if (s->interrupt_waits && s->running)
		send_interrupt(s);
	list_each_safe (it, next, &s->followers) {
		struct shell *f = list_entry(it, struct shell, follower);

		list_remove(&f->follower);
		f->follows = NULL;
		copy_state(f, s);
		loop_task_post(f->next);
	}
}

static void keep_state(struct shell *s)
{
	if (!s->new_cwd)
		return;
	free(s->cwd);
	s->cwd = take_ptr(s->new_cwd);
	/* One that was too large to take leaves the one before. */
	if (s->new_state.len > 0) {
		buf_done(&s->state);
		s->state = s->new_state;
		buf_init(&s->new_state, STATE_MAX);
	}
}

static void on_frame(struct shell *s, const struct shell_frame *f)
{
	switch (f->kind) {
	case SHELL_FRAME_RUN:
		if (s->run && !s->run->ending && s->run->seq == f->seq) {
			s->capturing = true;
			run_is_ending(s, f->code);
		}
		break;
	case SHELL_FRAME_CWD:
		free(s->new_cwd);
		s->new_cwd = f->text.len < PATH_MAX ? mem_strndup(f->text.p, f->text.len) : NULL;
		buf_clear(&s->new_state);
		break;
	case SHELL_FRAME_STATE:
		buf_clear(&s->new_state);
		if (buf_append_view(&s->new_state, f->text) < 0)
			buf_clear(&s->new_state);
		break;
	case SHELL_FRAME_END:
		keep_state(s);
		capture_ended(s);
		break;
	default:
		break;
	}
}

/* What is kept of an incomplete frame holds no NUL: a frame that grew too long ends at the next. */
static void take_frames(struct shell *s, struct view in)
{
	struct shell_frame f;
	struct view rest;

	if (s->frames.len + in.len > s->frames.max) {
		buf_clear(&s->frames);
		s->skipping = true;
	}
	if (s->skipping) {
		size_t n = view_find(in, '\0');

		s->skipping = n == in.len;
		in = view_skip(in, n);
	}
	if (buf_append_view(&s->frames, in) < 0)
		return;
	rest = buf_view(&s->frames);
	while (shell_frame_next(&rest, &f) != SHELL_FRAME_NONE)
		on_frame(s, &f);
	buf_consume(&s->frames, s->frames.len - rest.len);
	buf_shrink(&s->frames, /* keep_cap= */ 0);
}

/* Reads reports: 1, 0 when there are none now, or -1 when the other end is closed. */
static int pump_control(struct shell *s)
{
	char chunk[CHUNK];
	ssize_t n = recv(s->control, chunk, sizeof(chunk), MSG_DONTWAIT);

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
	take_frames(s, view_mem(chunk, (size_t)n));
	return 1;
}

static void send_script(struct shell *s)
{
	while (s->script.len > 0) {
		ssize_t n = send(s->control, buf_view(&s->script).p, s->script.len,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			loop_fd_want(s->control_watch, LOOP_READ | LOOP_WRITE);
			return;
		}
		if (n < 0) {
			/* The shell no longer reads; its end is about to be told. */
			buf_clear(&s->script);
			break;
		}
		buf_consume(&s->script, (size_t)n);
	}
	buf_shrink(&s->script, /* keep_cap= */ 0);
	loop_fd_want(s->control_watch, LOOP_READ);
}

static void on_control(void *arg, int fd, unsigned events)
{
	struct shell *s = arg;

	if (events & LOOP_WRITE)
		send_script(s);
	/* A closed channel stays readable: until the process has ended there is nothing to hear. */
	if ((events & (LOOP_READ | LOOP_HANGUP)) && pump_control(s) < 0)
		loop_fd_want(s->control_watch, 0);
}

static void close_control(struct shell *s)
{
	loop_fd_free(s->control_watch);
	s->control_watch = NULL;
	s->control = fd_close(s->control);
	buf_done(&s->script);
	buf_done(&s->frames);
	s->skipping = false;
	capture_ended(s);
}

static int start_process(struct shell *s, struct err *e)
{
	osb_cleanup(fd_closep) int theirs = -1;
	bool restored = s->state.len > 0;
	int pair[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "socketpair: %m");
	s->control = pair[0];
	theirs = pair[1];
	r = loop_fd_new(s->app->loop, s->control, on_control, s, &s->control_watch, e);
	if (r == 0)
		r = s->host->start(s->arg, theirs, s->output[1], restored, &s->kind, e);
	if (r < 0) {
		close_control(s);
		return r;
	}
	s->running = true;
	loop_fd_want(s->control_watch, LOOP_READ);
	r = shell_script_begin(&s->script, s->kind, s->cwd, buf_view(&s->state));
	return r < 0 ? err_set(e, r, "the session's state is too large") : 0;
}

static void on_timer(void *arg)
{
	struct shell *s = arg;

	if (!s->run || s->run->ending)
		return;
	if (s->run->cause != SHELL_ENDED) {
		s->host->signal(s->arg, SIGKILL);
		return;
	}
	interrupt(s, SHELL_TIMED_OUT);
}

static int begin_run(struct shell *s, struct shell_run *r, struct err *e)
{
	struct shell_script_run script = {
		.seq = r->seq, .command = buf_view(&r->command), .cwd = r->cwd, .envs = &r->envs};
	int q;

	if (!s->running) {
		q = start_process(s, e);
		if (q < 0)
			return q;
	}
	q = shell_script_run(&s->script, s->kind, &script);
	if (q < 0)
		return err_set(e, q, "the command is too large");
	send_script(s);
	return 0;
}

/* Drops what background jobs printed before this run. */
static void drop_output(struct shell *s)
{
	char chunk[CHUNK];
	int n = 0;

	if (ioctl(s->output[0], FIONREAD, &n) < 0)
		return;
	while (n > 0) {
		ssize_t got = read(s->output[0], chunk, MIN(sizeof(chunk), (size_t)n));

		if (got <= 0)
			return;
		n -= (int)got;
	}
}

static void on_next(void *arg)
{
	struct shell *s = arg;
	struct err e = ERR_NONE;
	struct shell_run *r;

	if (s->run || s->follows || list_empty(&s->queue))
		return;
	r = list_entry(s->queue.next, struct shell_run, link);
	list_remove(&r->link);
	s->queued--;
	s->run = r;
	r->active = true;
	s->interrupt_waits = false;
	r->seq = ++s->seq;
	r->started_us = clock_mono_us();
	drop_output(s);
	if (begin_run(s, r, &e) < 0) {
		r->cause = SHELL_NOT_STARTED;
		r->end.e = &e;
		active_ended(s);
		return;
	}
	buf_done(&r->command);
	if (r->job.timeout_ms > 0)
		loop_timer_start(s->timer, r->job.timeout_ms);
}

int shell_new(struct app *app, const struct shell_host *host, void *arg, const char *cwd,
	      struct shell **ret, struct err *e)
{
	osb_cleanup(shell_freep) struct shell *s = mem_new(struct shell);
	int r;

	s->app = app;
	s->host = host;
	s->arg = arg;
	s->control = s->output[0] = s->output[1] = -1;
	s->cwd = mem_strdup(cwd);
	buf_init(&s->script, SCRIPT_MAX);
	buf_init(&s->frames, STATE_MAX + CHUNK);
	buf_init(&s->state, STATE_MAX);
	buf_init(&s->new_state, STATE_MAX);
	list_init(&s->queue);
	list_init(&s->followers);
	list_init(&s->follower);
	s->timer = loop_timer_new(app->loop, on_timer, s);
	s->next = loop_task_new(app->loop, on_next, s);
	if (pipe2(s->output, O_CLOEXEC) < 0)
		return err_set(e, -errno, "pipe: %m");
	/* Best effort: fewer wake-ups when a run prints much. */
	(void)!fcntl(s->output[0], F_SETPIPE_SZ, PIPE_BYTES);
	/* Only our end: the shell and its programs expect a pipe that blocks. */
	if (fcntl(s->output[0], F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, -errno, "pipe: %m");
	r = loop_fd_new(app->loop, s->output[0], on_output, s, &s->output_watch, e);
	if (r < 0)
		return r;
	watch_output(s);
	*ret = take_ptr(s);
	return 0;
}

void shell_free(struct shell *s)
{
	if (!s)
		return;
	if (s->running)
		s->host->signal(s->arg, SIGKILL);
	s->running = false;
	close_control(s);
	list_remove(&s->follower);
	loop_task_free(s->next);
	loop_timer_free(s->timer);
	if (s->run) {
		s->run->cause = SHELL_CLOSED;
		run_end(s->run);
	}
	while (!list_empty(&s->queue)) {
		struct shell_run *r = list_entry(s->queue.next, struct shell_run, link);

		r->cause = SHELL_CLOSED;
		run_end(r);
	}
	loop_fd_free(s->output_watch);
	fd_close(s->output[0]);
	fd_close(s->output[1]);
	buf_done(&s->state);
	buf_done(&s->new_state);
	free(s->new_cwd);
	free(s->cwd);
	free(s);
}

int shell_submit(struct shell *s, const struct shell_job *job, struct shell_run **ret,
		 struct err *e)
{
	struct shell_run *r;

	if (s->queued >= SHELL_QUEUE_MAX)
		return err_set(e, -EBUSY, "too many runs wait in this session (%d)",
			       SHELL_QUEUE_MAX);
	r = mem_new(struct shell_run);
	r->shell = s;
	list_init(&r->link);
	r->job = *job;
	r->job.command = VIEW_NONE;
	r->job.cwd = NULL;
	r->job.envs = NULL;
	buf_init(&r->command, SHELL_COMMAND_MAX);
	if (buf_append_view(&r->command, job->command) < 0) {
		run_free(r);
		return err_set(e, -E2BIG, "the command is too large");
	}
	r->cwd = job->cwd ? mem_strdup(job->cwd) : NULL;
	if (job->envs)
		strv_copy(&r->envs, job->envs->v);
	list_push_back(&s->queue, &r->link);
	s->queued++;
	loop_task_post(s->next);
	*ret = r;
	return 0;
}

void shell_run_resume(struct shell_run *r)
{
	r->blocked = false;
	if (r->active)
		watch_output(r->shell);
}

void shell_run_interrupt(struct shell_run *r)
{
	struct shell *s = r->shell;

	if (!r->active) {
		r->cause = SHELL_INTERRUPTED;
		run_end(r);
		return;
	}
	if (!r->ending && r->cause == SHELL_ENDED)
		interrupt(s, SHELL_INTERRUPTED);
}

void shell_run_abandon(struct shell_run *r)
{
	r->job.output = NULL;
	r->job.done = NULL;
	shell_run_resume(r);
	shell_run_interrupt(r);
}

void shell_exited(struct shell *s, int status)
{
	struct shell_run *r;

	s->running = false;
	/* Reports that came just before the end still count. */
	while (s->control >= 0 && pump_control(s) > 0)
		;
	close_control(s);
	r = s->run;
	if (!r || r->ending)
		return;
	r->end.shell_gone = true;
	r->end.status = status;
	run_is_ending(s, process_exit_code(status));
}

void shell_follow(struct shell *s, struct shell *other)
{
	if (!other->capturing) {
		copy_state(s, other);
		return;
	}
	s->follows = other;
	list_push_back(&other->followers, &s->follower);
}

bool shell_busy(const struct shell *s)
{
	return s->run || !list_empty(&s->queue);
}
