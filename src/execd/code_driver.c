/*
 * execd/code_driver.c - the process, its two pipes and its channel.
 *
 * A message is handled after exactly those bytes that were in the pipes when it was seen: somebody
 * who goes on printing in the background cannot hold it up.
 */
#include "execd/code_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "execd/app.h"
#include "execd/code_languages.h"
#include "execd/code_message.h"
#include "execd/code_shell.h"
#include "execd/code_spawn.h"
#include "execd/process.h"
#include "net/loop.h"

#define CHUNK	     65536
#define PIPE_BYTES   (1 << 20)
#define READS_A_TURN 16
#define SEND_MAX     ((size_t)64 << 20)
#define EXIT_MS	     2000 /* for an interpreter to end by itself */
#define CLOSED_MS    500  /* the same, when it has closed its channel */

struct pipe {
	struct code_driver *driver;
	enum code_stream_name stream;
	int fd;
	struct loop_fd *watch;
	size_t rest; /* bytes that belong before the message at hand */
	bool large;
};

struct code_driver {
	struct app *app;
	struct list link; /* of those that nobody waits for */
	const struct code_language *language;
	const struct code_driver_events *events; /* NULL: nobody waits for it */
	void *arg;
	struct strv env;
	struct process *process;
	struct pipe pipes[CODE_STREAMS_];
	int channel;
	struct loop_fd *watch;
	struct loop_timer *grace; /* until it is killed */
	struct buf in, out;
	size_t scanned;		  /* bytes of `in` without the end of a line */
	struct code_shell *shell; /* how runs are written for a shell; or NULL */
	const char *killed;	  /* why; NULL: it was not */
	char confusion[320];
	bool running; /* a run was sent and has not ended */
	bool counted; /* the pipes' rests are those of the message at the front of `in` */
	bool paused;  /* the owner wants nothing now */
	bool exited;  /* `status` is known */
	bool pumping; /* somebody on the stack delivers */
	bool gone;    /* was stopped by whoever it delivers to */
	int status;
};

static void destroy(struct code_driver *d)
{
	list_remove(&d->link);
	for (size_t i = 0; i < ARRAY_LEN(d->pipes); i++) {
		loop_fd_free(d->pipes[i].watch);
		fd_close(d->pipes[i].fd);
	}
	loop_fd_free(d->watch);
	fd_close(d->channel);
	loop_timer_free(d->grace);
	process_free(d->process);
	buf_done(&d->in);
	buf_done(&d->out);
	strv_done(&d->env);
	code_shell_free(d->shell);
	free(d);
}

static void watch_all(struct code_driver *d)
{
	unsigned want = d->paused ? 0 : LOOP_READ;

	for (size_t i = 0; i < ARRAY_LEN(d->pipes); i++)
		if (d->pipes[i].watch)
			loop_fd_want(d->pipes[i].watch, want);
	if (d->watch)
		loop_fd_want(d->watch, want | (d->out.len > 0 ? LOOP_WRITE : 0));
}

/* ---- the pipes ---- */

static void close_pipe(struct pipe *p)
{
	loop_fd_free(p->watch);
	p->watch = NULL;
	p->fd = fd_close(p->fd);
	p->rest = 0;
}

/* One read of at most `max` bytes, delivered.  What came; 0 when there is nothing now. */
static size_t read_pipe(struct pipe *p, size_t max)
{
	struct code_driver *d = p->driver;
	char chunk[CHUNK];
	ssize_t n;

	if (p->fd < 0)
		return 0;
	n = read(p->fd, chunk, MIN(sizeof(chunk), max));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		close_pipe(p);
		return 0;
	}
	if ((size_t)n == sizeof(chunk) && !p->large) {
		/* A busy writer: fewer and larger portions from now on.  A smaller pipe will do. */
		(void)fcntl(p->fd, F_SETPIPE_SZ, PIPE_BYTES);
		p->large = true;
	}
	if (d->events && !d->events->output(d->arg, p->stream, view_mem(chunk, (size_t)n)))
		d->paused = true;
	return (size_t)n;
}

static size_t in_pipe(const struct pipe *p)
{
	int n = 0;

	return p->fd >= 0 && ioctl(p->fd, FIONREAD, &n) == 0 && n > 0 ? (size_t)n : 0;
}

/* Delivers what belongs before the message at hand, or before the end.  False: not all of it yet.
 */
static bool pump_rests(struct code_driver *d)
{
	for (size_t i = 0; i < ARRAY_LEN(d->pipes); i++) {
		struct pipe *p = &d->pipes[i];

		if (!d->counted)
			p->rest = in_pipe(p);
	}
	d->counted = true;
	for (size_t i = 0; i < ARRAY_LEN(d->pipes); i++) {
		struct pipe *p = &d->pipes[i];

		while (p->rest > 0) {
			size_t n;

			if (d->paused || d->gone)
				return false;
			n = read_pipe(p, p->rest);
			/* What was counted cannot vanish, unless somebody else reads it. */
			p->rest = n > 0 ? p->rest - MIN(n, p->rest) : 0;
		}
	}
	return !d->paused && !d->gone;
}

/* ---- messages ---- */

void code_driver_kill(struct code_driver *d, const char *why)
{
	if (d->exited)
		return;
	if (!d->killed)
		d->killed = why;
	process_signal(d->process, SIGKILL, /* group= */ true);
}

static void confused(struct code_driver *d, const char *how)
{
	snprintf(d->confusion, sizeof(d->confusion), "its driver said what it must not: %s", how);
	code_driver_kill(d, d->confusion);
	/* Nothing that it says is believed any more. */
	buf_done(&d->in);
	d->scanned = 0;
}

static void send_out(struct code_driver *d)
{
	while (d->out.len > 0 && d->channel >= 0) {
		ssize_t n = send(d->channel, buf_view(&d->out).p, d->out.len,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		/* It no longer reads: its end is about to be told. */
		buf_consume(&d->out, n < 0 ? d->out.len : (size_t)n);
	}
	if (d->out.len == 0)
		buf_shrink(&d->out, /* keep_cap= */ 0);
	watch_all(d);
}

static void take_line(struct code_driver *d, struct view line)
{
	struct code_message m;
	struct err e = ERR_NONE;
	bool more = true;

	if (code_message_parse(line, &m, &e) < 0) {
		confused(d, e.msg);
		return;
	}
	if (m.kind == CODE_DONE)
		d->running = false;
	if (d->events)
		more = d->events->message(d->arg, &m);
	if (m.sync && code_message_go(&d->out) == 0)
		send_out(d);
	code_message_done(&m);
	if (!more)
		d->paused = true;
}

static void tell_end(struct code_driver *d)
{
	const struct code_driver_events *events = d->events;

	d->events = NULL;
	if (!events)
		destroy(d);
	else
		events->ended(d->arg, d->status, d->killed);
}

static void close_channel(struct code_driver *d)
{
	loop_fd_free(d->watch);
	d->watch = NULL;
	d->channel = fd_close(d->channel);
}

static void on_grace(void *arg)
{
	code_driver_kill(arg, "it closed its channel");
}

static void give_grace(struct code_driver *d, uint64_t ms)
{
	if (!d->grace)
		d->grace = loop_timer_new(d->app->loop, on_grace, d);
	loop_timer_start(d->grace, ms);
}

/* Reads what the channel has.  False: nothing, or it is closed. */
static bool read_channel(struct code_driver *d)
{
	char *room = buf_reserve(&d->in, CHUNK);
	ssize_t n;

	if (!room) {
		confused(d, "a line that is too long");
		return false;
	}
	n = d->channel >= 0 ? recv(d->channel, room, CHUNK, MSG_DONTWAIT) : 0;
	if (n > 0) {
		buf_commit(&d->in, (size_t)n);
		return true;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		/* Most likely the process is ending: then its end tells why. */
		close_channel(d);
		if (!d->exited)
			give_grace(d, CLOSED_MS);
	}
	return false;
}

/* Delivers lines as long as somebody takes them. */
static void pump_lines(struct code_driver *d)
{
	while (!d->paused && !d->gone) {
		struct view in = buf_view(&d->in);
		size_t end = d->scanned + view_find(view_skip(in, d->scanned), '\n');

		if (end == in.len) {
			d->scanned = end;
			if (d->killed || !read_channel(d))
				break;
			continue;
		}
		if (!pump_rests(d))
			return;
		d->counted = false;
		take_line(d, view_first(in, end));
		buf_consume(&d->in, MIN(end + 1, d->in.len));
		d->scanned = 0;
	}
	if (d->in.len == 0)
		buf_shrink(&d->in, CHUNK);
}

/* Everything that can be delivered now. */
static void pump(struct code_driver *d)
{
	if (d->pumping)
		return;
	d->pumping = true;
	pump_lines(d);
	if (d->exited && !d->paused && !d->gone && pump_rests(d)) {
		d->pumping = false;
		tell_end(d);
		return;
	}
	d->pumping = false;
	if (d->gone && d->exited)
		destroy(d);
	else
		watch_all(d);
}

static void on_pipe(void *arg, int fd, unsigned events)
{
	struct pipe *p = arg;
	struct code_driver *d = p->driver;

	/* With a message at hand only what belongs before it is read. */
	if (!d->counted && !d->pumping) {
		d->pumping = true;
		for (int i = 0; i < READS_A_TURN && !d->paused; i++)
			if (read_pipe(p, CHUNK) == 0)
				break;
		d->pumping = false;
	}
	if (d->paused)
		watch_all(d);
}

static void on_channel(void *arg, int fd, unsigned events)
{
	struct code_driver *d = arg;

	if (events & LOOP_WRITE)
		send_out(d);
	if (events & (LOOP_READ | LOOP_HANGUP))
		pump(d);
}

static void on_exited(void *arg, int status)
{
	struct code_driver *d = arg;

	d->exited = true;
	d->status = status;
	pump(d);
}

/* ---- the owner's side ---- */

static int watch_new(struct code_driver *d, struct err *e)
{
	if (loop_fd_new(d->app->loop, d->channel, on_channel, d, &d->watch, e) < 0)
		return e->code;
	for (size_t i = 0; i < ARRAY_LEN(d->pipes); i++) {
		struct pipe *p = &d->pipes[i];

		if (loop_fd_new(d->app->loop, p->fd, on_pipe, p, &p->watch, e) < 0)
			return e->code;
	}
	watch_all(d);
	return 0;
}

static int start(struct code_driver *d, const char *cwd, struct err *e)
{
	struct code_spawned s;
	int r;

	r = code_spawn(d->app, d->language, cwd, &d->env, on_exited, d, &s, e);
	if (r < 0)
		return r;
	d->process = s.process;
	d->channel = s.channel;
	for (size_t i = 0; i < ARRAY_LEN(d->pipes); i++)
		d->pipes[i].fd = s.pipes[i];
	process_own_group(d->process);
	r = watch_new(d, e);
	if (r == 0 && (d->language->flags & CODE_SHELL)) {
		d->shell = code_shell_new(d->language->files[0]);
		r = code_shell_begin(d->shell, &d->out);
		send_out(d);
	}
	if (r < 0)
		process_signal(d->process, SIGKILL, /* group= */ true);
	return r;
}

int code_driver_start(struct app *app, struct code_driver_spec *spec,
		      const struct code_driver_events *events, void *arg, struct code_driver **ret,
		      struct err *e)
{
	struct code_driver *d = mem_new(struct code_driver);
	int r;

	d->app = app;
	d->language = spec->language;
	d->events = events;
	d->arg = arg;
	d->env = spec->env;
	spec->env = STRV_INIT;
	d->channel = -1;
	list_init(&d->link);
	for (size_t i = 0; i < ARRAY_LEN(d->pipes); i++)
		d->pipes[i] =
			(struct pipe){.driver = d, .stream = (enum code_stream_name)i, .fd = -1};
	buf_init(&d->in, CODE_MESSAGE_MAX + CHUNK);
	buf_init(&d->out, SEND_MAX);
	r = start(d, spec->cwd, e);
	if (r < 0) {
		destroy(d);
		return r;
	}
	*ret = d;
	return 0;
}

void code_driver_give(struct code_driver *d, const struct code_driver_events *events, void *arg)
{
	d->events = events;
	d->arg = arg;
}

const struct strv *code_driver_env(const struct code_driver *d)
{
	return &d->env;
}

int code_driver_run(struct code_driver *d, const char *id, uint64_t count, struct view code,
		    struct err *e)
{
	size_t before = d->out.len;
	int r;

	if (d->shell && view_has(code, '\0'))
		return err_set(e, -EINVAL, "a shell cannot take NUL bytes");
	r = d->shell ? code_shell_run(d->shell, &d->out, id, count, code)
		     : code_message_run(&d->out, id, count, code);
	if (r < 0) {
		buf_truncate(&d->out, before);
		return err_set(e, r, "the code is too long");
	}
	d->running = true;
	send_out(d);
	return 0;
}

void code_driver_resume(struct code_driver *d)
{
	if (!d->paused)
		return;
	d->paused = false;
	pump(d);
}

void code_driver_skip_output(struct code_driver *d)
{
	char chunk[CHUNK];

	for (size_t i = 0; i < ARRAY_LEN(d->pipes); i++)
		for (size_t left = in_pipe(&d->pipes[i]); left > 0;) {
			ssize_t n = read(d->pipes[i].fd, chunk, MIN(left, sizeof(chunk)));

			left = n > 0 ? left - (size_t)n : 0;
		}
}

bool code_driver_has_read(const struct code_driver *d)
{
	int unread = 0;

	if (d->shell || d->channel < 0)
		return true;
	return d->out.len == 0 && (ioctl(d->channel, TIOCOUTQ, &unread) < 0 || unread == 0);
}

void code_driver_interrupt(struct code_driver *d, const char *id)
{
	if (d->exited)
		return;
	if (!(d->language->flags & CODE_INTERRUPT_MESSAGE))
		process_signal(d->process, SIGINT, /* group= */ true);
	else if (code_message_interrupt(&d->out, id) == 0)
		send_out(d);
}

void code_driver_stop(struct code_driver *d, bool at_once)
{
	if (!d)
		return;
	d->events = NULL;
	d->paused = false;
	d->gone = d->pumping;
	if (d->exited) {
		if (!d->pumping)
			destroy(d);
		return;
	}
	list_push_back(&d->app->ending_drivers, &d->link);
	if (d->running || at_once) {
		code_driver_kill(d, "it was stopped");
	} else {
		close_channel(d);
		give_grace(d, EXIT_MS);
	}
	if (!d->pumping)
		watch_all(d);
}

void code_drivers_done(struct app *app)
{
	list_each_safe (it, next, &app->ending_drivers) {
		struct code_driver *d = list_entry(it, struct code_driver, link);

		code_driver_kill(d, "the daemon ends");
		destroy(d);
	}
}
