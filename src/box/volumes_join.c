/*
 * box/volumes_join.c - volumes for a sandbox that was made ahead.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "box/setup.h"
#include "box/volumes.h"
#include "sys/clone.h"

static int join(const struct setup *s, int box_pidfd, struct err *e)
{
	struct volumes_copies m;
	int r = volumes_copy(s, &m, e);

	/* The root and the current directory become that namespace's root. */
	if (r == 0 && setns(box_pidfd, CLONE_NEWNS) < 0)
		r = err_set(e, -errno, "enter the sandbox's mount namespace: %m");
	if (r == 0)
		r = volumes_attach(s, &m, e);
	volumes_copies_done(&m);
	return r;
}

int volumes_join_start(const struct setup *s, int box_pidfd, int *ret_pidfd, int *ret_report_fd,
		       struct err *e)
{
	osb_cleanup(fd_closep) int report_r = -1, report_w = -1, seen = -1;
	int ends[2], pidfd, r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(e, -errno, "pipe: %m");
	report_r = ends[0];
	report_w = ends[1];
	/* The child sees low descriptors only. */
	seen = fcntl(box_pidfd, F_DUPFD_CLOEXEC, 0);
	if (seen < 0)
		return err_set(e, -errno, "dup: %m");
	r = clone_process(/* namespaces= */ 0, /* cgroup_fd= */ -1, &pid, &pidfd, e);
	if (r < 0)
		return r;
	if (pid == 0) {
		struct err told = ERR_NONE;

		clone_reset_signals();
		(void)!join(s, seen, &told);
		(void)!write(report_w, &told, sizeof(told));
		_exit(0);
	}
	*ret_pidfd = pidfd;
	*ret_report_fd = take_fd(report_r);
	return 0;
}

/* Silence is a failure here: the process has died. */
int volumes_join_result(int report_fd, int pidfd, struct err *e)
{
	struct err told;
	ssize_t n;

	do {
		n = read(report_fd, &told, sizeof(told));
	} while (n < 0 && errno == EINTR);
	clone_kill_and_reap(pidfd);
	if (n != (ssize_t)sizeof(told) || told.code > 0)
		return err_set(e, -EIO, "mounting the volumes gave no result");
	told.msg[sizeof(told.msg) - 1] = '\0';
	*e = told;
	return e->code;
}
