/*
 * fault.c - counts wrapped calls and makes one of them fail.
 */
#include "fault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct {
	enum fault_kind kind;
	int left; /* calls until one fails; 0: never */
	bool met;
} fault;

static bool fails(enum fault_kind kind, int error)
{
	if (fault.kind != kind || fault.left == 0 || --fault.left > 0)
		return false;
	fault.met = true;
	errno = error;
	return true;
}

/* Declares the real function behind a wrapped one, and the wrapper that may fail. */
#define WRAP(kind, error, failure, type, name, params, args)                                       \
	type __real_##name params;                                                                 \
	type __wrap_##name params;                                                                 \
	type __wrap_##name params                                                                  \
	{                                                                                          \
		return fails(kind, error) ? (failure) : __real_##name args;                        \
	}

WRAP(FAULT_MEMORY, ENOMEM, NULL, void *, malloc, (size_t n), (n))
WRAP(FAULT_MEMORY, ENOMEM, NULL, void *, calloc, (size_t n, size_t size), (n, size))
WRAP(FAULT_MEMORY, ENOMEM, NULL, void *, realloc, (void *p, size_t n), (p, n))

WRAP(FAULT_CALL, EMFILE, -1, int, pipe2, (int fds[2], int flags), (fds, flags))
WRAP(FAULT_CALL, EMFILE, -1, int, dup, (int fd), (fd))
WRAP(FAULT_CALL, EMFILE, -1, int, socket, (int f, int t, int p), (f, t, p))
WRAP(FAULT_CALL, EMFILE, -1, int, socketpair, (int f, int t, int p, int fds[2]), (f, t, p, fds))
WRAP(FAULT_CALL, EMFILE, -1, int, memfd_create, (const char *name, unsigned flags), (name, flags))
WRAP(FAULT_CALL, ECONNREFUSED, -1, int, connect, (int fd, const struct sockaddr *a, socklen_t n),
     (fd, a, n))
WRAP(FAULT_CALL, EIO, -1, ssize_t, read, (int fd, void *p, size_t n), (fd, p, n))
WRAP(FAULT_CALL, ENOSPC, -1, ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n))
WRAP(FAULT_CALL, EIO, -1, ssize_t, pread64, (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
WRAP(FAULT_CALL, EIO, -1, ssize_t, sendmsg, (int fd, const struct msghdr *m, int f), (fd, m, f))
WRAP(FAULT_CALL, EIO, -1, ssize_t, recvmsg, (int fd, struct msghdr *m, int f), (fd, m, f))
WRAP(FAULT_CALL, EIO, -1, int, fstat64, (int fd, struct stat *st), (fd, st))
WRAP(FAULT_CALL, EACCES, -1, int, fstatat64, (int d, const char *p, struct stat *st, int f),
     (d, p, st, f))
WRAP(FAULT_CALL, EACCES, -1, int, mkdirat, (int d, const char *p, mode_t m), (d, p, m))
WRAP(FAULT_CALL, ENOSPC, -1, int, ftruncate64, (int fd, off_t n), (fd, n))

WRAP(FAULT_CALL, EACCES, -1, int, renameat, (int a, const char *p, int b, const char *q),
     (a, p, b, q))
WRAP(FAULT_CALL, EACCES, -1, int, linkat, (int a, const char *p, int b, const char *q, int f),
     (a, p, b, q, f))
WRAP(FAULT_CALL, EPERM, -1, int, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(FAULT_CALL, EPERM, -1, int, fchown, (int fd, uid_t uid, gid_t gid), (fd, uid, gid))

/* A child that cannot even exit would not be a fault but a different kernel. */
long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (number != SYS_exit_group && fails(FAULT_CALL, ENOMEM))
		return -1;
	return __real_syscall(number, a, b, c, d, e, f);
}

/* These take their mode as a variable argument; with 64-bit offsets they go by other names. */
int __real_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode)
{
	return fails(FAULT_CALL, EMFILE) ? -1 : __real_open64(path, flags, mode);
}

int __real_openat64(int dir, const char *path, int flags, mode_t mode);
int __wrap_openat64(int dir, const char *path, int flags, mode_t mode);
int __wrap_openat64(int dir, const char *path, int flags, mode_t mode)
{
	return fails(FAULT_CALL, EMFILE) ? -1 : __real_openat64(dir, path, flags, mode);
}

/* All open fds in one string, so that a difference shows which one. */
static void list_fds(char *ret, size_t size)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t used = 0;

	assert_non_null(dir);
	for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		char *end;
		long fd = strtol(d->d_name, &end, 10);

		if (*end == '\0' && end != d->d_name && fd != dirfd(dir))
			used += (size_t)snprintf(ret + used, size - used, "%ld ", fd);
	}
	closedir(dir);
}

static void assert_no_child(int run)
{
	siginfo_t info = {0};

	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD)
		fail_msg("fault %d left a child behind", run);
}

int fault_each(enum fault_kind kind, fault_operation *operation, void *arg)
{
	/* A run that never stops meeting faults has a loop of its own. */
	const int limit = 10000;

	for (int run = 1; run < limit; run++) {
		char before[512] = "", after[512] = "";
		int r;

		list_fds(before, sizeof(before));
		fault.kind = kind;
		fault.met = false;
		fault.left = run;
		r = operation(arg);
		fault.left = 0;
		list_fds(after, sizeof(after));
		if (strcmp(before, after) != 0)
			fail_msg("fault %d changed the open fds from %s to %s", run, before, after);
		assert_no_child(run);
		if (!fault.met) {
			if (r < 0)
				fail_msg("it fails without a fault too: %d", r);
			return run - 1;
		}
	}
	fail_msg("no end after %d faults", limit);
	return -1;
}
