/*
 * warden/trash.c - a process of its own deletes what lies in trash/.
 *
 * Removing a directory takes milliseconds on some disks, and requests must not wait for it.  The
 * process sees nothing of the warden but the trash, and ends with it; if it ends before, another
 * one is started.
 */
#include "warden/trash.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "net/loop.h"
#include "sys/caps.h"
#include "sys/clone.h"
#include "sys/proc.h"
#include "warden/empty.h"
#include "warden/warden.h"

#define RETRY_MS 1000
#define NICENESS 5

/* Trees on the way out.  If there are more, the warden helps and so slows down whoever fills the
 * disk faster than it can be emptied. */
#define BACKLOG_MAX 256
#define HELP_US	    2000

struct trash {
	struct warden *warden;
	int wake_fd; /* a byte for the process: there is something; end of file: the end */
	int pidfd;   /* -1: there is no process */
	struct loop_fd *exit_watch;
	struct loop_timer *restart;
};

/* ---- the process ---- */

enum { TRASH_FD = 3, WAKE_FD = 4 };

static void keep_two_fds(int trash_fd, int wake_fd)
{
	int a = fcntl(trash_fd, F_DUPFD, WAKE_FD + 1), b = fcntl(wake_fd, F_DUPFD, WAKE_FD + 1);

	if (a < 0 || b < 0 || dup2(a, TRASH_FD) < 0 || dup2(b, WAKE_FD) < 0 ||
	    close_range(WAKE_FD + 1, ~0U, 0) < 0)
		_exit(1);
}

/* What unlinking takes: the owners below are of no id range of ours. */
static void keep_few_rights(pid_t parent)
{
	struct err e = ERR_NONE;

	(void)prctl(PR_SET_NAME, "osb-trash", 0, 0, 0);
	(void)setpriority(PRIO_PROCESS, 0, NICENESS);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent ||
	    caps_keep_file_rights(&e) < 0)
		_exit(1);
}

static osb_noreturn void empty_forever(void)
{
	struct pollfd wake = {.fd = WAKE_FD, .events = POLLIN};
	char bytes[64];

	for (;;) {
		int r = empty_pass(TRASH_FD, UINT64_MAX);

		if (r > 0)
			continue;
		if (r < 0) {
			log_line(LOG_WARN, "cannot empty the trash, retrying",
				 LOG_S("err", strerror(-r)));
			(void)poll(NULL, 0, RETRY_MS);
			continue;
		}
		(void)poll(&wake, 1, -1);
		if (read(WAKE_FD, bytes, sizeof(bytes)) == 0)
			_exit(0);
	}
}

/* ---- the warden ---- */

static int start(struct trash *t, struct err *e);

static void restart(void *arg)
{
	struct err e = ERR_NONE;

	if (start(arg, &e) < 0)
		log_line(LOG_ERROR, "cannot start what empties the trash", LOG_S("err", e.msg));
}

static void stop(struct trash *t)
{
	loop_fd_free(take_ptr(t->exit_watch));
	if (t->pidfd >= 0)
		clone_kill_and_reap(t->pidfd);
	t->pidfd = fd_close(t->pidfd);
	t->wake_fd = fd_close(t->wake_fd);
}

static void ended(void *arg, int fd, unsigned events)
{
	struct trash *t = arg;

	(void)fd;
	(void)events;
	log_line(LOG_WARN, "what empties the trash has ended, starting it again");
	stop(t);
	loop_timer_start(t->restart, RETRY_MS);
}

static int watch(struct trash *t, pid_t pid, struct err *e)
{
	uint64_t start_time;
	int r = proc_start_time(pid, &start_time, e);

	if (r == 0)
		r = proc_open(pid, start_time, &t->pidfd, e);
	if (r < 0)
		return r;
	t->pidfd = clone_hide_fd(t->pidfd);
	r = loop_fd_new(t->warden->loop, t->pidfd, ended, t, &t->exit_watch, e);
	if (r == 0)
		loop_fd_want(t->exit_watch, LOOP_READ);
	return r;
}

static int start(struct trash *t, struct err *e)
{
	osb_cleanup(fd_closep) int wake_r = -1;
	pid_t self = getpid(), pid;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_set(e, -errno, "pipe: %m");
	wake_r = ends[0];
	t->wake_fd = clone_hide_fd(ends[1]);
	pid = fork();
	if (pid == 0) {
		keep_two_fds(t->warden->trash_fd, wake_r);
		clone_reset_signals();
		keep_few_rights(self);
		empty_forever();
	}
	r = pid < 0 ? err_set(e, -errno, "fork: %m") : watch(t, pid, e);
	if (r < 0)
		t->wake_fd = fd_close(t->wake_fd);
	return r;
}

int trash_new(struct warden *w, struct trash **ret, struct err *e)
{
	struct trash *t = mem_new(struct trash);
	int r;

	t->warden = w;
	t->wake_fd = t->pidfd = -1;
	t->restart = loop_timer_new(w->loop, restart, t);
	r = start(t, e); /* with what an earlier warden left */
	if (r < 0) {
		trash_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

void trash_free(struct trash *t)
{
	if (!t)
		return;
	stop(t);
	loop_timer_free(t->restart);
	free(t);
}

void trash_put_from(struct warden *w, int dir_fd, const char *name)
{
	char to[RAND_HEX_LEN + 1];
	struct stat st;

	rand_hex(to);
	if (renameat(dir_fd, name, w->trash_fd, to) < 0) {
		if (errno != ENOENT)
			log_line(LOG_ERROR, "cannot move a box into the trash",
				 LOG_S("err", strerror(errno)));
		return;
	}
	if (w->trash->wake_fd >= 0)
		(void)!write(w->trash->wake_fd, "", 1); /* a full pipe wakes as well */
	/* Where directories are counted as links, that is. */
	if (fstat(w->trash_fd, &st) == 0 && st.st_nlink > BACKLOG_MAX)
		(void)!empty_pass(w->trash_fd, clock_mono_us() + HELP_US);
}

void trash_put(struct warden *w, const char *name)
{
	trash_put_from(w, w->boxes_fd, name);
}
