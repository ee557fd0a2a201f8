/*
 * sys/proc.c - pidfd_open, /proc/PID/stat, waitid.
 */
#include "sys/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"

#define START_TIME_FIELD 22

int proc_start_time(pid_t pid, uint64_t *ret, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	char path[32], text[1024];
	struct view rest, field = VIEW_NONE;
	const char *after;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, errno == ENOENT ? -ESRCH : -errno, "open %s: %m", path);
	n = read(fd, text, sizeof(text));
	if (n <= 0)
		return err_set(e, -ESRCH, "read %s", path);
	/* The name in field 2 may hold anything, also blanks and parentheses: count from its last
	 * ')'. */
	after = memrchr(text, ')', (size_t)n);
	if (!after || after + 2 > text + n)
		return err_set(e, -EINVAL, "%s is malformed", path);
	rest = view_mem(after + 2, (size_t)(text + n - (after + 2)));
	for (int i = 3; i <= START_TIME_FIELD; i++)
		if (!view_split(&rest, ' ', &field))
			return err_set(e, -EINVAL, "%s is short", path);
	if (!num_parse_u64(field, ret))
		return err_set(e, -EINVAL, "%s is malformed", path);
	return 0;
}

int proc_open(pid_t pid, uint64_t start_time, int *ret_pidfd, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	uint64_t started;
	int r;

	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return err_set(e, -errno, "pidfd_open %d: %m", pid);
	/* The fd came first: whoever has the pid now keeps it while we compare. */
	r = proc_start_time(pid, &started, e);
	if (r < 0)
		return r;
	if (started != start_time)
		return err_set(e, -ESRCH, "process %d is another one", pid);
	*ret_pidfd = take_fd(fd);
	return 0;
}

int proc_reap(int pidfd, int *ret_status)
{
	siginfo_t info = {0};

	if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG | __WALL) < 0)
		return -errno;
	if (info.si_pid == 0)
		return -EAGAIN;
	*ret_status =
		info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : info.si_status & 0x7f;
	return 0;
}

void proc_kill(int pidfd)
{
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

void proc_kill_and_await(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	proc_kill(pidfd);
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
}
