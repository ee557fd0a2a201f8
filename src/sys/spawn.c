/*
 * sys/spawn.c - clone, set up, exec.
 *
 * The child runs on a stack of its own in our memory while we are suspended (CLONE_VFORK), so it
 * may do nothing but system calls on what was prepared before, and it tells its failing step
 * through that same memory.
 */
#include "sys/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

#define DEFAULT_PATH	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define CHILD_STACK	(64 * 1024)
#define CHILD_PATH_MAX	4096
#define SPAWN_MAX_EXTRA 16

/* The sanitizers know nothing of a second stack in one thread. */
#define child_code __attribute__((no_sanitize("address", "undefined"), no_stack_protector))

enum step {
	STEP_NONE,
	STEP_GROUP,
	STEP_TERMINAL,
	STEP_GROUPS,
	STEP_GID,
	STEP_UID,
	STEP_CHDIR,
	STEP_FDS,
	STEP_NO_NEW_PRIVS,
	STEP_FILTER,
	STEP_EXEC,
};

struct child {
	const struct spawn *s;
	enum step failed;
	int error;
	char path[CHILD_PATH_MAX];
};

static child_code int child_ids(struct child *c)
{
	const struct spawn *s = c->s;

	if (!(s->flags & SPAWN_IDS))
		return 0;
	c->failed = STEP_GROUPS;
	if (syscall(SYS_setgroups, s->groups_n, s->groups) < 0) {
		/* Without the right to set groups, keeping our own set is only right for ourselves.
		 */
		if (errno != EPERM || s->uid != geteuid() || s->gid != getegid())
			return -1;
	}
	c->failed = STEP_GID;
	if (syscall(SYS_setresgid, s->gid, s->gid, s->gid) < 0)
		return -1;
	c->failed = STEP_UID;
	return syscall(SYS_setresuid, s->uid, s->uid, s->uid) < 0 ? -1 : 0;
}

/*
 * An end that reads as empty and swallows nothing.  Where /dev/null is missing, a socket without a
 * peer does: reading it gives the end of the file, writing to it an error without a signal.
 */
static child_code int child_null(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);

	if (fd >= 0)
		return fd;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		(void)shutdown(fd, SHUT_RD);
	return fd;
}

/* First everything moves above the target numbers, then down to its place: no source is overwritten
 * before it was used. */
static child_code int child_fds(struct child *c)
{
	const struct spawn *s = c->s;
	int total = 3 + (int)s->extra_fds_n;
	int src[3 + SPAWN_MAX_EXTRA];

	c->failed = STEP_FDS;
	for (int i = 0; i < total; i++) {
		src[i] = i < 3 ? s->fds[i] : s->extra_fds[i - 3];
		if (src[i] < 0 && (src[i] = child_null()) < 0)
			return -1;
		if (src[i] < total && (src[i] = fcntl(src[i], F_DUPFD_CLOEXEC, total)) < 0)
			return -1;
	}
	for (int i = 0; i < total; i++)
		if (dup2(src[i], i) < 0)
			return -1;
	return 0;
}

/* The kernel's struct sigaction in words: SIG_DFL, no flags, no restorer, an empty mask. */
static const unsigned long default_action[4];

/* Ignored signals would stay ignored after exec, and a handler must never run on our memory. */
static child_code void child_signals(void)
{
	struct sigaction action;
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++) {
		if (sig == SIGKILL || sig == SIGSTOP || sigaction(sig, NULL, &action) < 0)
			continue;
		if (action.sa_handler == SIG_DFL)
			continue;
		memset(&action, 0, sizeof(action));
		action.sa_handler = SIG_DFL;
		(void)sigaction(sig, &action, NULL);
	}
	/* The C library keeps 32 and 33 to itself, yet posix_spawn(3) leaves them ignored. */
	for (int sig = 32; sig <= 33; sig++)
		(void)syscall(SYS_rt_sigaction, sig, default_action, NULL,
			      sizeof(default_action[3]));
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Tries `name` in every absolute directory of the path, as execvp(3) does but without its shell. */
static child_code void child_search(struct child *c, const char *name)
{
	const char *dir = c->s->search_path ? c->s->search_path : DEFAULT_PATH;
	size_t name_len = strlen(name);
	int error = ENOENT;

	while (*dir) {
		const char *end = strchrnul(dir, ':');
		size_t len = (size_t)(end - dir);

		if (*dir == '/' && len + name_len + 2 <= sizeof(c->path)) {
			memcpy(c->path, dir, len);
			c->path[len] = '/';
			memcpy(c->path + len + 1, name, name_len + 1);
			execve(c->path, c->s->argv, c->s->env);
			if (errno != ENOENT && errno != ENOTDIR)
				error = errno;
			if (error != ENOENT && error != EACCES)
				break;
		}
		dir = *end ? end + 1 : end;
	}
	errno = error;
}

static child_code int child_prepare(struct child *c)
{
	const struct spawn *s = c->s;

	/* Lowering a limit does not fail. */
	if (s->nofile)
		(void)setrlimit(RLIMIT_NOFILE, s->nofile);
	c->failed = STEP_GROUP;
	if ((s->flags & SPAWN_SESSION ? setsid() : setpgid(0, 0)) < 0)
		return -1;
	if (s->flags & SPAWN_FOREGROUND) {
		pid_t group = getpid();

		/* Every signal is blocked here, so that asking from the background does not stop
		 * us. */
		(void)ioctl(s->fds[0], TIOCSPGRP, &group);
	}
	if (child_ids(c) < 0)
		return -1;
	/* After the ids, since changing them undoes it.  We are suspended and cannot be gone yet.
	 */
	if (s->flags & SPAWN_DIE_WITH_US)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	c->failed = STEP_CHDIR;
	if (s->cwd && chdir(s->cwd) < 0)
		return -1;
	if (child_fds(c) < 0)
		return -1;
	c->failed = STEP_TERMINAL;
	if ((s->flags & SPAWN_CTTY) && ioctl(0, TIOCSCTTY, 0) < 0)
		return -1;
	c->failed = STEP_NO_NEW_PRIVS;
	if ((s->filter || s->flags & SPAWN_NO_NEW_PRIVS) &&
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return 0;
}

/* Whatever it forbids, we have done.  It is no reason to run slower for fear of speculation. */
static child_code int child_filter(struct child *c)
{
	c->failed = STEP_FILTER;
	if (!c->s->filter)
		return 0;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		       c->s->filter) < 0
		       ? -1
		       : 0;
}

static child_code int child_main(void *arg)
{
	struct child *c = arg;
	const struct spawn *s = c->s;

	if (child_prepare(c) == 0 && child_filter(c) == 0) {
		c->failed = STEP_EXEC;
		child_signals();
		if (s->path)
			execve(s->path, s->argv, s->env);
		else if (strchr(s->argv[0], '/'))
			execve(s->argv[0], s->argv, s->env);
		else
			child_search(c, s->argv[0]);
	}
	c->error = errno;
	syscall(SYS_exit_group, 127);
	return 127;
}

static int report(const struct child *c, struct err *e)
{
	const struct spawn *s = c->s;

	errno = c->error;
	switch (c->failed) {
	case STEP_CHDIR:
		return err_set(e, -c->error, "chdir '%s': %m", s->cwd);
	case STEP_GROUPS:
		return err_set(e, -c->error, "set groups: %m");
	case STEP_GID:
		return err_set(e, -c->error, "set gid %u: %m", (unsigned)s->gid);
	case STEP_UID:
		return err_set(e, -c->error, "set uid %u: %m", (unsigned)s->uid);
	case STEP_GROUP:
		return err_set(e, -c->error, "new process group: %m");
	case STEP_TERMINAL:
		return err_set(e, -c->error, "controlling terminal: %m");
	case STEP_FDS:
		return err_set(e, -c->error, "standard streams: %m");
	case STEP_NO_NEW_PRIVS:
		return err_set(e, -c->error, "no new privileges: %m");
	case STEP_FILTER:
		return err_set(e, -c->error, "system call filter: %m");
	case STEP_EXEC:
		if (!s->path && !strchr(s->argv[0], '/') && c->error == ENOENT)
			return err_set(e, -ENOENT, "exec '%s': not found in PATH", s->argv[0]);
		return err_set(e, -c->error, "exec '%s': %m", s->path ? s->path : s->argv[0]);
	default:
		return err_set(e, -c->error, "start: %m");
	}
}

static void reap_failed(int pidfd)
{
	siginfo_t info;

	while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | __WALL) < 0 && errno == EINTR)
		;
}

int spawn(const struct spawn *s, pid_t *ret_pid, int *ret_pidfd, struct err *e)
{
	static _Alignas(16) unsigned char stack[CHILD_STACK];
	osb_cleanup(fd_closep) int pidfd = -1;
	struct child c = {.s = s};
	sigset_t all, before;
	pid_t pid;
	int error;

	if (!s->argv[0])
		return err_set(e, -EINVAL, "nothing to execute");
	if (s->extra_fds_n > SPAWN_MAX_EXTRA)
		return err_set(e, -E2BIG, "too many descriptors to pass on");

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = clone(child_main, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &c, &pidfd);
	error = errno;
	sigprocmask(SIG_SETMASK, &before, NULL);

	errno = error;
	if (pid < 0)
		return err_set(e, -error, "clone: %m");
	if (c.error) {
		reap_failed(pidfd);
		return report(&c, e);
	}
	*ret_pid = pid;
	*ret_pidfd = take_fd(pidfd);
	return 0;
}

static int wait_status(int pidfd, int options, int *ret_status)
{
	siginfo_t info = {0};

	while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG | options) < 0)
		if (errno != EINTR)
			return -errno;
	if (info.si_pid == 0)
		return -EAGAIN;
	if (info.si_code == CLD_EXITED)
		*ret_status = W_EXITCODE(info.si_status, 0);
	else
		*ret_status = info.si_status | (info.si_code == CLD_DUMPED ? WCOREFLAG : 0);
	return 0;
}

int spawn_reap(int pidfd, int *ret_status)
{
	return wait_status(pidfd, 0, ret_status);
}

int spawn_peek(int pidfd, int *ret_status)
{
	return wait_status(pidfd, WNOWAIT, ret_status);
}
