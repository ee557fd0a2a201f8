/*
 * sys/namespace.c - clone3 without an own stack: a fork into new namespaces.
 */
#include "sys/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

static const struct {
	unsigned flag;
	uint64_t kernel;
} kinds[] = {
	{NAMESPACE_USER, CLONE_NEWUSER}, {NAMESPACE_MOUNT, CLONE_NEWNS},
	{NAMESPACE_PID, CLONE_NEWPID},	 {NAMESPACE_IPC, CLONE_NEWIPC},
	{NAMESPACE_UTS, CLONE_NEWUTS},	 {NAMESPACE_NET, CLONE_NEWNET},
};

static void reset_signals(void)
{
	struct sigaction standard = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGPIPE && sig != SIGKILL && sig != SIGSTOP)
			(void)sigaction(sig, &standard, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

int namespace_fork(unsigned flags, pid_t *ret_pid, int *ret_pidfd, struct err *e)
{
	int pidfd = -1;
	struct clone_args args = {
		.flags = CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd, .exit_signal = SIGCHLD};
	int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	sigset_t all, before;
	long pid;
	int error;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (flags & kinds[i].flag)
			args.flags |= kinds[i].kernel;

	/*
	 * The files through which a child's ids are mapped belong to root while it is not dumpable:
	 * for others it has to be, until they are written.
	 */
	if (flags & NAMESPACE_USER)
		(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	/* No handler of ours may run in the child. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = syscall(SYS_clone3, &args, sizeof(args));
	error = errno;
	if (pid == 0) {
		reset_signals();
		*ret_pid = 0;
		*ret_pidfd = -1;
		return 0;
	}
	if (flags & NAMESPACE_USER)
		(void)prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = error;
	if (pid < 0)
		return err_set(e, -error, "clone into new namespaces: %m");
	*ret_pid = (pid_t)pid;
	*ret_pidfd = pidfd;
	return 0;
}

/* The lowest of `keep` that is not below `from`, or a number that no descriptor has. */
static unsigned next_kept(const int *keep, size_t keep_n, unsigned from)
{
	unsigned best = ~0u;

	for (size_t i = 0; i < keep_n; i++)
		if (keep[i] >= 0 && (unsigned)keep[i] >= from && (unsigned)keep[i] < best)
			best = (unsigned)keep[i];
	return best;
}

void namespace_close_fds(const int *keep, size_t keep_n)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	unsigned from = 3;

	for (int fd = 0; fd <= 2; fd++)
		if (null >= 0 && next_kept(keep, keep_n, (unsigned)fd) != (unsigned)fd)
			(void)dup2(null, fd);
	for (;;) {
		unsigned kept = next_kept(keep, keep_n, from);

		if (kept > from)
			(void)syscall(SYS_close_range, from, kept == ~0u ? ~0u : kept - 1, 0u);
		if (kept == ~0u)
			return;
		from = kept + 1;
	}
}

static int write_text(pid_t pid, const char *name, const char *text, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return err_set(e, -errno, "write %s: %m", path);
	return 0;
}

int namespace_map_ids(pid_t pid, uid_t uid, gid_t gid, struct err *e)
{
	char text[48];
	int r;

	snprintf(text, sizeof(text), "%u %u 1\n", (unsigned)uid, (unsigned)geteuid());
	r = write_text(pid, "uid_map", text, e);
	/* Without this an unprivileged writer of gid_map is refused. */
	if (r == 0)
		r = write_text(pid, "setgroups", "deny", e);
	if (r < 0)
		return r;
	snprintf(text, sizeof(text), "%u %u 1\n", (unsigned)gid, (unsigned)getegid());
	return write_text(pid, "gid_map", text, e);
}

int namespace_raise_loopback(struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct ifreq req = {.ifr_name = "lo"};

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &req) < 0)
		return err_set(e, -errno, "loopback: %m");
	req.ifr_flags = (short)(req.ifr_flags | IFF_UP);
	if (ioctl(fd, SIOCSIFFLAGS, &req) < 0)
		return err_set(e, -errno, "loopback up: %m");
	return 0;
}
