/*
 * sys/clone.c - clone3, pivot_root, execveat and the housekeeping of a fresh child.
 */
#include "sys/clone.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

int clone_hide_fd(int fd)
{
	int hidden = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, CLONE_FDS_SEEN);

	if (hidden < 0)
		return fd;
	fd_close(fd);
	return hidden;
}

/* Until the child has said that its descriptors are its own, or has ended. */
static void await_own_fds(int ready_fd, int pidfd)
{
	struct pollfd p[] = {{.fd = ready_fd, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};

	while (poll(p, ARRAY_LEN(p), -1) < 0 && errno == EINTR)
		;
}

int clone_process(uint64_t namespaces, int cgroup_fd, pid_t *ret_pid, int *ret_pidfd, struct err *e)
{
	osb_cleanup(fd_closep) int ready_r = -1, ready_w = -1;
	int pidfd = -1, ends[2];
	struct clone_args args = {
		.flags = namespaces | CLONE_PIDFD | CLONE_FILES,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	long pid;

	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(e, -errno, "pipe: %m");
	ready_r = ends[0];
	ready_w = ends[1];
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		return err_set(e, -errno, "clone3: %m");
	/* Shared until here, so that only the low ones are copied; we wait meanwhile. */
	if (pid == 0 && (syscall(SYS_close_range, CLONE_FDS_SEEN, ~0U, CLOSE_RANGE_UNSHARE) < 0 ||
			 write(ready_w, "", 1) != 1))
		_exit(127);
	if (pid > 0)
		await_own_fds(ready_r, pidfd);
	*ret_pid = (pid_t)pid;
	*ret_pidfd = pidfd;
	return 0;
}

int clone_pivot_root(struct err *e)
{
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return err_set(e, -errno, "pivot_root: %m");
	return 0;
}

/* Sources are first moved out of the way, so that no target overwrites a source that is still
 * needed. */
int clone_place_fds(const int *fds, size_t n, struct err *e)
{
	int moved[8], null_fd;

	if (n > ARRAY_LEN(moved))
		return err_set(e, -EINVAL, "too many descriptors");
	for (size_t i = 0; i < n; i++) {
		moved[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 64);
		if (moved[i] < 0)
			return err_set(e, -errno, "dup: %m");
	}
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		return err_set(e, -errno, "open /dev/null: %m");
	for (int i = 0; i < 3; i++)
		if (dup2(null_fd, i) < 0)
			return err_set(e, -errno, "dup2: %m");
	for (size_t i = 0; i < n; i++)
		if (dup2(moved[i], 3 + (int)i) < 0)
			return err_set(e, -errno, "dup2: %m");
	if (syscall(SYS_close_range, 3 + n, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return err_set(e, -errno, "close_range: %m");
	return 0;
}

void clone_reset_signals(void)
{
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL); /* those that cannot be changed stay */
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

void clone_exec(int fd, const char *const *argv, const char *const *env)
{
	(void)syscall(SYS_execveat, fd, "", argv, env, AT_EMPTY_PATH);
}

void clone_kill_and_reap(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	siginfo_t info;

	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	/* waitid(2) does not wait through a pidfd that an event loop made non-blocking. */
	while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | __WALL) < 0 &&
	       (errno == EINTR || errno == EAGAIN))
		(void)poll(&p, 1, -1);
}
