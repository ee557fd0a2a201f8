/*
 * execd/pty.c - the shell's process, its descriptors and its output.
 *
 * A terminal's master is used through two descriptors, one to read and one to write, so that
 * terminals and pipes are handled alike.
 */
#include "execd/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/strv.h"
#include "execd/app.h"
#include "execd/find_shell.h"
#include "execd/process.h"
#include "execd/pty_ring.h"
#include "net/loop.h"
#include "sys/pty.h"
#include "sys/session.h"

#define COLS	    80
#define ROWS	    24
#define READ_ROUNDS 8		 /* per wake-up */
#define DRAIN_BYTES (256 * 1024) /* read after the end: more comes from what it left behind */
#define INPUT_MAX   (4 * 1024 * 1024)

enum { FD_IN, FD_OUT, FD_ERR, FDS_ };

struct channel {
	int fd;
	struct loop_fd *watch;
};

struct pty {
	struct app *app;
	char id[RAND_UUID_LEN + 1];
	char *cwd, *command;
	enum pty_mode mode;
	struct process *process; /* NULL when nothing runs */
	struct channel channels[FDS_];
	struct buf input; /* typed, not yet taken */
	bool held;
	struct pty_ring ring;
	struct list watchers;
	struct pty_watcher *holder;
	void (*gone)(void *arg);
	void *gone_arg;
};

struct pty *pty_new(struct app *app, const char *id, const char *cwd, const char *command)
{
	struct pty *p = mem_new(struct pty);

	p->app = app;
	memcpy(p->id, id, MIN(strlen(id), sizeof(p->id) - 1));
	p->cwd = cwd ? mem_strdup(cwd) : NULL;
	p->command = command && *command ? mem_strdup(command) : NULL;
	for (int i = 0; i < FDS_; i++)
		p->channels[i].fd = -1;
	buf_init(&p->input, INPUT_MAX);
	pty_ring_init(&p->ring, PTY_RING_BYTES);
	list_init(&p->watchers);
	return p;
}

static void close_channel(struct channel *c)
{
	loop_fd_free(c->watch);
	c->watch = NULL;
	c->fd = fd_close(c->fd);
}

static void close_channels(struct pty *p)
{
	for (int i = 0; i < FDS_; i++)
		close_channel(&p->channels[i]);
	buf_done(&p->input);
}

/* ---- output ---- */

static void update_reading(struct pty *p)
{
	for (int i = FD_OUT; i <= FD_ERR; i++)
		if (p->channels[i].watch)
			loop_fd_want(p->channels[i].watch, p->held ? 0 : LOOP_READ);
}

static void emit(struct pty *p, enum pty_stream s, struct view bytes)
{
	uint64_t offset = p->ring.total;

	pty_ring_write(&p->ring, bytes);
	list_each_safe (it, next, &p->watchers) {
		struct pty_watcher *w = list_entry(it, struct pty_watcher, link);

		w->output(w, s, offset, bytes);
	}
}

/* Bytes read, 0 when there is nothing now, -1 when nothing more comes. */
static ssize_t read_once(struct pty *p, int which)
{
	char chunk[PTY_CHUNK_BYTES];
	ssize_t n;

	do
		n = read(p->channels[which].fd, chunk, sizeof(chunk));
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		return -1; /* a terminal says EIO when its last user has closed it */
	emit(p, which == FD_OUT ? PTY_STDOUT : PTY_STDERR, view_mem(chunk, (size_t)n));
	return n;
}

static void on_output(void *arg, int fd, unsigned events)
{
	struct pty *p = arg;
	int which = fd == p->channels[FD_OUT].fd ? FD_OUT : FD_ERR;
	ssize_t n = 1;

	for (int i = 0; i < READ_ROUNDS && n > 0 && !p->held; i++)
		n = read_once(p, which);
	if (n < 0)
		close_channel(&p->channels[which]);
}

/* What was written before the end is delivered, whatever still holds the other side open. */
static void drain_output(struct pty *p)
{
	for (int i = FD_OUT; i <= FD_ERR; i++) {
		size_t left = p->channels[i].fd < 0 ? 0 : DRAIN_BYTES;

		while (left) {
			ssize_t n = read_once(p, i);

			if (n <= 0)
				break;
			left -= MIN(left, (size_t)n);
		}
	}
}

void pty_hold_output(struct pty *p, bool hold)
{
	p->held = hold;
	update_reading(p);
}

/* ---- input ---- */

static ssize_t write_input(struct pty *p, struct view bytes)
{
	ssize_t n;

	if (p->channels[FD_IN].fd < 0)
		return -EPIPE;
	do
		n = write(p->channels[FD_IN].fd, bytes.p, bytes.len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	return n;
}

static void on_input(void *arg, int fd, unsigned events)
{
	struct pty *p = arg;
	ssize_t n = write_input(p, buf_view(&p->input));

	if (n < 0) {
		/* Nobody reads any more: the next one who types hears of it. */
		close_channel(&p->channels[FD_IN]);
		buf_done(&p->input);
	} else {
		buf_consume(&p->input, (size_t)n);
	}
	if (p->input.len)
		return;
	buf_done(&p->input);
	if (p->channels[FD_IN].watch)
		loop_fd_want(p->channels[FD_IN].watch, 0);
	if (p->holder)
		p->holder->input_drained(p->holder);
}

int pty_type(struct pty *p, struct view bytes)
{
	ssize_t n = 0;
	int r;

	if (p->channels[FD_IN].fd < 0)
		return -EPIPE;
	if (!p->input.len)
		n = write_input(p, bytes);
	if (n < 0)
		return (int)n;
	r = buf_append_view(&p->input, view_skip(bytes, (size_t)n));
	if (r < 0)
		return r;
	if (!p->input.len)
		return 0;
	loop_fd_want(p->channels[FD_IN].watch, LOOP_WRITE);
	return 1;
}

/* ---- life of the shell ---- */

static int exit_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void on_exited(void *arg, int status)
{
	struct pty *p = arg;

	drain_output(p);
	close_channels(p);
	process_free(take_ptr(p->process));
	list_each_safe (it, next, &p->watchers) {
		struct pty_watcher *w = list_entry(it, struct pty_watcher, link);

		list_remove(&w->link);
		w->exited(w, exit_code(status));
	}
	if (p->gone)
		p->gone(p->gone_arg);
}

static int open_terminal(struct pty *p, int theirs[FDS_], struct err *e)
{
	int r = pty_open(COLS, ROWS, &p->channels[FD_OUT].fd, &theirs[FD_IN], e);

	if (r < 0)
		return r;
	p->channels[FD_IN].fd = fcntl(p->channels[FD_OUT].fd, F_DUPFD_CLOEXEC, 3);
	theirs[FD_OUT] = fcntl(theirs[FD_IN], F_DUPFD_CLOEXEC, 3);
	theirs[FD_ERR] = fcntl(theirs[FD_IN], F_DUPFD_CLOEXEC, 3);
	if (p->channels[FD_IN].fd < 0 || theirs[FD_OUT] < 0 || theirs[FD_ERR] < 0)
		return err_set(e, -errno, "open the terminal again: %m");
	return 0;
}

static int open_pipes(struct pty *p, int theirs[FDS_], struct err *e)
{
	for (int i = 0; i < FDS_; i++) {
		int ends[2];
		int ours = i == FD_IN ? 1 : 0;

		if (pipe2(ends, O_CLOEXEC) < 0)
			return err_set(e, -errno, "make a pipe: %m");
		p->channels[i].fd = ends[ours];
		theirs[i] = ends[!ours];
		if (fcntl(ends[ours], F_SETFL, O_NONBLOCK) < 0)
			return err_set(e, -errno, "make a pipe: %m");
	}
	return 0;
}

static int start_shell(struct pty *p, const int theirs[FDS_], struct err *e)
{
	osb_cleanup(strv_done) struct strv args = STRV_INIT;
	osb_cleanup(strv_done) struct strv env = STRV_INIT;
	struct spawn spec = {
		.path = find_shell(p->app),
		.cwd = p->cwd,
		.fds = {theirs[FD_IN], theirs[FD_OUT], theirs[FD_ERR]},
		.flags = SPAWN_SESSION | (p->mode == PTY_TERMINAL ? SPAWN_CTTY : 0),
	};
	int r;

	if (!spec.path)
		return err_set(e, -ENOENT, "there is neither bash nor sh");
	strv_add(&args, spec.path);
	if (view_ends(view_of(spec.path), VIEW("/bash"))) {
		strv_add(&args, "--norc");
		strv_add(&args, "--noprofile");
	}
	if (p->command) {
		strv_add(&args, "-c");
		strv_add(&args, p->command);
	}
	strv_copy(&env, strv_args(&p->app->env));
	if (p->mode == PTY_TERMINAL && !strv_env_get(&env, VIEW("TERM")))
		strv_env_set(&env, VIEW("TERM"), VIEW("xterm-256color"));
	spec.argv = strv_args(&args);
	spec.env = strv_args(&env);
	r = process_start(p->app, &spec, on_exited, p, &p->process, e);
	if (r < 0)
		find_shell_forget(p->app);
	return r;
}

static int watch_channels(struct pty *p, struct err *e)
{
	for (int i = 0; i < FDS_; i++) {
		struct channel *c = &p->channels[i];
		int r;

		if (c->fd < 0)
			continue;
		r = loop_fd_new(p->app->loop, c->fd, i == FD_IN ? on_input : on_output, p,
				&c->watch, e);
		if (r < 0)
			return r;
	}
	update_reading(p);
	return 0;
}

int pty_start(struct pty *p, enum pty_mode mode, struct err *e)
{
	int theirs[FDS_] = {-1, -1, -1};
	int r;

	p->mode = mode;
	p->held = false;
	r = mode == PTY_TERMINAL ? open_terminal(p, theirs, e) : open_pipes(p, theirs, e);
	r = r ? r : watch_channels(p, e);
	r = r ? r : start_shell(p, theirs, e);
	for (int i = 0; i < FDS_; i++)
		fd_close(theirs[i]);
	if (r < 0)
		close_channels(p);
	return r;
}

void pty_set_size(struct pty *p, uint16_t cols, uint16_t rows)
{
	if (p->mode == PTY_TERMINAL && p->channels[FD_OUT].fd >= 0)
		(void)!pty_resize(p->channels[FD_OUT].fd, cols, rows);
}

void pty_signal(struct pty *p, int signum)
{
	pid_t foreground = -1;

	if (!p->process)
		return;
	if (p->mode == PTY_TERMINAL && p->channels[FD_OUT].fd >= 0)
		foreground = pty_foreground(p->channels[FD_OUT].fd);
	if (foreground > 1 && foreground != process_pid(p->process))
		(void)kill(-foreground, signum);
	process_signal(p->process, signum, /* group= */ true);
}

/* Also the jobs in the background, which have groups of their own. */
static void kill_all(struct pty *p)
{
	if (!p->process)
		return;
	session_signal(process_pid(p->process), SIGKILL);
	pty_signal(p, SIGKILL);
}

void pty_kill(struct pty *p, void (*gone)(void *arg), void *arg)
{
	p->gone = gone;
	p->gone_arg = arg;
	if (p->process)
		kill_all(p);
	else
		gone(arg);
}

/* ---- who watches ---- */

void pty_watch(struct pty *p, struct pty_watcher *w)
{
	list_push_back(&p->watchers, &w->link);
}

void pty_unwatch(struct pty_watcher *w)
{
	list_remove(&w->link);
}

struct pty_watcher *pty_holder(const struct pty *p)
{
	return p->holder;
}

void pty_set_holder(struct pty *p, struct pty_watcher *w)
{
	p->holder = w;
	pty_hold_output(p, false);
}

const char *pty_id(const struct pty *p)
{
	return p->id;
}

bool pty_running(const struct pty *p)
{
	return p->process != NULL;
}

enum pty_mode pty_mode(const struct pty *p)
{
	return p->mode;
}

const struct pty_ring *pty_output(const struct pty *p)
{
	return &p->ring;
}

void pty_free(struct pty *p)
{
	if (!p)
		return;
	kill_all(p);
	process_free(p->process);
	close_channels(p);
	pty_ring_done(&p->ring);
	free(p->cwd);
	free(p->command);
	free(p);
}
