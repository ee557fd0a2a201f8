/*
 * sys/spawn.h - starts a program: clone, set up, exec, with the real cause when that fails.
 *
 * The child shares our memory until it has executed (like vfork), so starting costs the same
 * however large we are.  A failing step (chdir, setgid, exec...) comes back as the child's own
 * errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"

struct err;
struct rlimit;
struct sock_fprog;

enum spawn_flags {
	SPAWN_SESSION = 1, /* setsid(): own session and process group (default: own group) */
	SPAWN_CTTY = 2,	   /* with SPAWN_SESSION: fd 0 becomes the controlling terminal */
	SPAWN_IDS = 4,	   /* set uid, gid and groups */
	SPAWN_NO_NEW_PRIVS = 8,
	SPAWN_FOREGROUND = 16,	/* if fd 0 is our terminal, the new group becomes its foreground */
	SPAWN_DIE_WITH_US = 32, /* the kernel kills it when we end */
};

struct spawn {
	const char *path; /* file to execute, or NULL: argv[0] is looked up in `search_path` */
	const char *search_path; /* PATH to search; only absolute entries count; NULL = a sane
				    default */
	char *const *argv;
	char *const *env;
	const char *cwd;      /* or NULL: ours */
	int fds[3];	      /* become 0, 1, 2; -1 = /dev/null */
	const int *extra_fds; /* become 3, 4, ...; borrowed */
	size_t extra_fds_n;
	unsigned flags;
	uid_t uid;
	gid_t gid;
	const gid_t *groups;
	size_t groups_n;
	const struct rlimit *nofile;	 /* limit of open files, or NULL: ours */
	const struct sock_fprog *filter; /* of system calls; implies SPAWN_NO_NEW_PRIVS */
};

/* On success the caller owns *ret_pidfd (close-on-exec) and must reap the child through it. */
osb_must_check int spawn(const struct spawn *s, pid_t *ret_pid, int *ret_pidfd, struct err *e);

/* Reaps through the pidfd.  0 and *ret_status as of waitpid(2), or -EAGAIN while it runs. */
osb_must_check int spawn_reap(int pidfd, int *ret_status);

/* The same, but leaves the child a zombie: its pid and process group stay its own. */
osb_must_check int spawn_peek(int pidfd, int *ret_status);
