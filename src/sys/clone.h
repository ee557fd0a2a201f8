/*
 * sys/clone.h - a child in new namespaces, and what it does between clone and exec.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"

struct err;

/* The child sees our descriptors below this one only: copying all of them would make every clone
 * slower the more sandboxes there are.  What is kept for long is moved above. */
#define CLONE_FDS_SEEN 256

/* Moves a descriptor (owned) above; where there is no room, it stays.  Accepts -1. */
osb_must_check int clone_hide_fd(int fd);

/* clone3 with a pidfd; `cgroup_fd` >= 0 starts it in that v2 cgroup.  *ret_pid is 0 in the child.
 * In the parent it returns when the child has descriptors of its own. */
osb_must_check int clone_process(uint64_t namespaces, int cgroup_fd, pid_t *ret_pid, int *ret_pidfd,
				 struct err *e);

/* Makes the current directory the root; the old root lies on top of it until it is unmounted. */
osb_must_check int clone_pivot_root(struct err *e);

/* `fds` become 3, 4, ... without close-on-exec; everything above closes at exec.  0, 1, 2 become
 * /dev/null. */
osb_must_check int clone_place_fds(const int *fds, size_t n, struct err *e);

/* Default dispositions, nothing blocked. */
void clone_reset_signals(void);

/* Executes the file that `fd` is open on; returns only on failure. */
void clone_exec(int fd, const char *const *argv, const char *const *env);

/* SIGKILL, then waits for the end. */
void clone_kill_and_reap(int pidfd);
