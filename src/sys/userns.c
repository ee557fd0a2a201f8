/*
 * sys/userns.c - makes a user namespace with the help of a child that only waits.
 *
 * A namespace lives as long as a process or an fd is in it: the child goes once its fd was opened.
 */
#include "sys/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "sys/caps.h"

static int write_map(pid_t pid, const char *name, uint32_t base, uint32_t count, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	char path[48], text[48];
	int n;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open %s: %m", path);
	n = snprintf(text, sizeof(text), "0 %" PRIu32 " %" PRIu32 "\n", base, count);
	if (write(fd, text, (size_t)n) < 0)
		return err_set(e, -errno, "write %s: %m", path);
	return 0;
}

int userns_of(pid_t pid, int *ret_fd, struct err *e)
{
	char path[48];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open %s: %m", path);
	*ret_fd = fd;
	return 0;
}

static int map_and_open(pid_t pid, uint32_t base, uint32_t count, int *ret_fd, struct err *e)
{
	int r;

	r = write_map(pid, "uid_map", base, count, e);
	if (r == 0)
		r = write_map(pid, "gid_map", base, count, e);
	/* What is not mapped now, anybody inside may map once. */
	if (r == 0)
		r = write_map(pid, "projid_map", base, count, e);
	return r < 0 ? r : userns_of(pid, ret_fd, e);
}

/* Until it is killed, or the one that waits for it is. */
static osb_noreturn void wait_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		_exit(1);
	while (getppid() == parent)
		pause();
	_exit(0);
}

/* A namespace's inotify instances, queued signals and the like count for its maker too.  Made by
 * root they would all count as root's, and one sandbox could use up what the host needs. */
static pid_t clone_as(uid_t owner, struct err *e)
{
	/* Descriptors are shared, not copied: there may be many of them. */
	struct clone_args args = {.flags = CLONE_NEWUSER | CLONE_FILES, .exit_signal = SIGCHLD};
	pid_t self = getpid(), pid;

	if (seteuid(owner) < 0)
		return err_set(e, -errno, "seteuid: %m");
	pid = caps_raise_effective(e);
	if (pid == 0) {
		pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
		if (pid == 0)
			wait_with(self);
		if (pid < 0)
			err_set(e, -errno, "clone a user namespace: %m");
	}
	if (seteuid(0) < 0)
		abort();
	return pid < 0 ? e->code : pid;
}

int userns_new(uint32_t base, uint32_t count, int *ret_fd, struct err *e)
{
	pid_t pid = clone_as(base, e);
	int r;

	if (pid < 0)
		return pid;
	r = map_and_open(pid, base, count, ret_fd, e);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, __WALL);
	return r;
}

int userns_enter(int fd, struct err *e)
{
	if (setgroups(0, NULL) < 0)
		return err_set(e, -errno, "setgroups: %m");
	if (setns(fd, CLONE_NEWUSER) < 0)
		return err_set(e, -errno, "enter the user namespace: %m");
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return err_set(e, -errno, "become root of the user namespace: %m");
	return 0;
}
