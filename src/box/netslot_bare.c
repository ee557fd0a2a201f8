/*
 * box/netslot_bare.c - made by a child in a user namespace of its own, where it may do so.
 *
 * The namespace belongs to that user namespace, into which nobody comes any more when the child has
 * gone: a sandbox has as few rights over it as over one of the host's.
 */
#include "box/netslot_bare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "sys/clone.h"
#include "sys/namespace.h"

/* Says how it went, and stays until we have what we want, or are no more. */
static osb_noreturn void raise_and_wait(int fd)
{
	struct err e = ERR_NONE;
	char answer;

	namespace_close_fds(&fd, 1);
	if (namespace_raise_loopback(&e) == 0 && write(fd, "", 1) == 1)
		(void)!read(fd, &answer, 1);
	_exit(0);
}

static int open_from(pid_t pid, int fd, int *ret_netns, struct err *e)
{
	char path[32], answer;
	int netns, r;

	if (read(fd, &answer, 1) != 1)
		return err_set(e, -EPERM, "loopback cannot be brought up");
	/* Root of the host is root of that namespace, too: its settings are ours to make. */
	r = namespace_map_ids(pid, 0, 0, e);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	netns = open(path, O_RDONLY | O_CLOEXEC);
	if (netns < 0)
		return err_set(e, -errno, "open %s: %m", path);
	*ret_netns = netns;
	return 0;
}

int netslot_bare(int *ret_netns, struct err *e)
{
	osb_cleanup(fd_closep) int ours = -1, theirs = -1, pidfd = -1;
	int ends[2], r;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(e, -errno, "socketpair: %m");
	ours = ends[0];
	theirs = ends[1];
	r = namespace_fork(NAMESPACE_USER | NAMESPACE_NET, &pid, &pidfd, e);
	if (r < 0)
		return r;
	if (pid == 0)
		raise_and_wait(theirs);
	theirs = fd_close(theirs);
	r = open_from(pid, ours, ret_netns, e);
	clone_kill_and_reap(pidfd);
	return r;
}
