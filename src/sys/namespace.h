/*
 * sys/namespace.h - processes in namespaces of their own.
 *
 * The child of namespace_fork() is a copy of the caller, as after fork(2): meant for work that
 * must not hold up the caller, or that must happen inside the new namespaces.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"

struct err;

enum namespace_flags {
	NAMESPACE_USER = 1,
	NAMESPACE_MOUNT = 2,
	NAMESPACE_PID = 4,
	NAMESPACE_IPC = 8,
	NAMESPACE_UTS = 16,
	NAMESPACE_NET = 32,
};

/*
 * Forks with new namespaces (0 = none).  In the parent *ret_pid and *ret_pidfd (owned) name the
 * child; in the child *ret_pid is 0.  The child begins with all signals at their defaults and
 * unblocked, except that SIGPIPE stays ignored.  With NAMESPACE_USER it can be traced by us until
 * it forbids that itself.
 */
osb_must_check int namespace_fork(unsigned flags, pid_t *ret_pid, int *ret_pidfd, struct err *e);

/* In the child: closes every descriptor but those in `keep`; 0, 1 and 2 become /dev/null. */
void namespace_close_fds(const int *keep, size_t keep_n);

/* From the parent: the child's namespace knows one user and one group, who are us outside. */
osb_must_check int namespace_map_ids(pid_t pid, uid_t uid, gid_t gid, struct err *e);

/* Inside a new network namespace: brings "lo" up. */
osb_must_check int namespace_raise_loopback(struct err *e);
