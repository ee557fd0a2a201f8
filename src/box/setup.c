/*
 * box/setup.c - the containment of a sandbox, step by step.
 *
 * The child is cloned into new namespaces that belong to the host; it mounts everything while it is
 * still privileged, and enters its user namespace near the end, so that root inside owns none of
 * the others.  A step that fails sends its error over a pipe that exec closes.
 */
#include "box/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "box/cgroup.h"
#include "box/filter.h"
#include "box/harden.h"
#include "box/rootfs.h"
#include "box/volumes.h"
#include "sys/clone.h"
#include "sys/mountfd.h"
#include "sys/userns.h"

typedef int step_fn(const struct setup *s, struct err *e);

static int enter_cgroup(const struct setup *s, struct err *e)
{
	int r = cgroup_join(s->cgroup, e);

	if (r < 0)
		return r;
	/* Only now: the namespace's root is the cgroup at the moment it is made. */
	if (unshare(CLONE_NEWCGROUP) < 0)
		return err_set(e, -errno, "unshare: %m");
	return 0;
}

static int enter_network(const struct setup *s, struct err *e)
{
	if (setns(s->netns_fd, CLONE_NEWNET) < 0)
		return err_set(e, -errno, "setns: %m");
	return 0;
}

/* The new root is the current directory since it was mounted. */
static int exchange_root(const struct setup *s, struct err *e)
{
	osb_cleanup(fd_closep) int root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = root < 0 ? err_set(e, -errno, "open the new root: %m") : 0;

	if (r == 0)
		r = mountfd_attach(root, s->bottom_fd, ".", e);
	if (r < 0)
		return r;
	/* From the bottom, over which the new root lies now. */
	if (fchdir(s->bottom_fd) < 0 || umount2(SETUP_ABOVE, MNT_DETACH) < 0)
		return err_set(e, -errno, "detach the old root: %m");
	if (fchdir(root) < 0 || chroot(".") < 0 || chdir("/") < 0)
		return err_set(e, -errno, "enter the new root: %m");
	return 0;
}

static int enter_userns(const struct setup *s, struct err *e)
{
	return userns_enter(s->userns_fd, e);
}

static int limit_resources(const struct setup *s, struct err *e)
{
	(void)s;
	return harden_rlimits(e);
}

static int isolate_keyrings(const struct setup *s, struct err *e)
{
	(void)s;
	return harden_keyring(e);
}

static int drop_capabilities(const struct setup *s, struct err *e)
{
	(void)s;
	return harden_capabilities(e);
}

static int forbid_new_privileges(const struct setup *s, struct err *e)
{
	(void)s;
	return harden_no_new_privs(e);
}

static int place_fds(const struct setup *s, struct err *e)
{
	return clone_place_fds(s->fds, s->fds_n, e);
}

static int load_filter(const struct setup *s, struct err *e)
{
	return filter_apply(s->filter, e);
}

/* Order is the security argument: each step assumes only the ones above it. */
static const struct {
	const char *name;
	step_fn *run;
} steps[] = {
	{"cgroup", enter_cgroup},
	{"network namespace", enter_network},
	{"root filesystem", rootfs_mount},
	{"/proc", rootfs_mount_proc},
	{"/sys", rootfs_mount_sys},
	{"/dev", rootfs_mount_dev},
	{NULL, volumes_mount}, /* names the volume itself */
	{"new root", exchange_root},
	{"resource limits", limit_resources},
	{"keyrings", isolate_keyrings},
	{"file descriptors", place_fds},
	{"user namespace", enter_userns},
	{"capabilities", drop_capabilities},
	{"no new privileges", forbid_new_privileges},
	{"system call filter", load_filter},
};

static osb_noreturn void child(const struct setup *given, int report_fd)
{
	struct err e = ERR_NONE;
	struct setup own = *given, *s = &own;
	int exec_fd = fcntl(s->exec_fd, F_DUPFD_CLOEXEC, 64);
	int report = fcntl(report_fd, F_DUPFD_CLOEXEC, 64);

	s->bottom_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (exec_fd < 0 || report < 0 || s->bottom_fd < 0)
		_exit(127);
	clone_reset_signals();
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		if (steps[i].run(s, &e) < 0) {
			if (steps[i].name)
				err_ctx(&e, "%s", steps[i].name);
			goto failed;
		}
	}
	clone_exec(exec_fd, s->argv, s->env);
	err_set(&e, -errno, "execute execd: %m");
failed:
	(void)!write(report, &e, sizeof(e));
	_exit(127);
}

/* Nothing but an end of file means that exec closed the pipe: execd runs. */
int setup_result(int report_fd, struct err *e)
{
	struct err told;
	ssize_t n;

	do {
		n = read(report_fd, &told, sizeof(told));
	} while (n < 0 && errno == EINTR);
	if (n == 0)
		return 0;
	if (n != (ssize_t)sizeof(told) || told.code >= 0)
		return err_set(e, -EIO, "the sandbox's first process gave no reason");
	told.msg[sizeof(told.msg) - 1] = '\0';
	*e = told;
	return e->code;
}

int setup_start(const struct setup *s, pid_t *ret_pid, int *ret_pidfd, int *ret_report_fd,
		struct err *e)
{
	osb_cleanup(fd_closep) int report_r = -1, report_w = -1;
	int ends[2], pidfd, r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(e, -errno, "pipe: %m");
	report_r = ends[0];
	report_w = ends[1];
	r = clone_process(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS,
			  cgroup_clone_fd(s->cgroup), &pid, &pidfd, e);
	if (r < 0)
		return r;
	if (pid == 0)
		child(s, report_w);
	*ret_pid = pid;
	*ret_pidfd = pidfd;
	*ret_report_fd = take_fd(report_r);
	return 0;
}
