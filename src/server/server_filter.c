/*
 * server/server_filter.c - an allow-list: sockets, its database, memory, time, and no more.
 *
 * No programs, no processes, no threads, no namespaces, no mounts, and no sockets but unix ones:
 * connections to sandboxes come from the warden.  What is not named fails with EPERM, which is
 * reported as any other failure.
 */
#include "server/server_filter.h"

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/macro.h"
#include "sys/allow_list.h"

static const char *const allowed[] = {
	/* the loop, connections */
	"accept4",
	"connect",
	"epoll_create1",
	"epoll_ctl",
	"epoll_pwait",
	"epoll_pwait2",
	"epoll_wait",
	"eventfd2",
	"getpeername",
	"getsockname",
	"getsockopt",
	"pipe2",
	"poll",
	"ppoll",
	"recvfrom",
	"recvmsg",
	"sendfile",
	"sendmsg",
	"sendto",
	"setsockopt",
	"shutdown",
	"socketpair",
	"splice",
	"timerfd_create",
	"timerfd_settime",
	/* files: the database, logs of entrypoints, start files in memory */
	"access",
	"close",
	"close_range",
	"dup",
	"dup2",
	"dup3",
	"faccessat",
	"faccessat2",
	"fallocate",
	"fchmod",
	"fcntl",
	"fdatasync",
	"flock",
	"fstat",
	"fstatfs",
	"fsync",
	"ftruncate",
	"getcwd",
	"getdents64",
	"ioctl",
	"lseek",
	"lstat",
	"memfd_create",
	"newfstatat",
	"open",
	"openat",
	"pread64",
	"preadv",
	"pwrite64",
	"pwritev",
	"read",
	"readlink",
	"readlinkat",
	"readv",
	"rename",
	"renameat",
	"renameat2",
	"stat",
	"statfs",
	"statx",
	"umask",
	"unlink",
	"unlinkat",
	"utimensat",
	"write",
	"writev",
	/* memory */
	"brk",
	"madvise",
	"mincore",
	"mlock",
	"mmap",
	"mprotect",
	"mremap",
	"msync",
	"munmap",
	/* time, signals, who we are */
	"clock_getres",
	"clock_gettime",
	"clock_nanosleep",
	"exit",
	"exit_group",
	"futex",
	"get_robust_list",
	"getegid",
	"geteuid",
	"getgid",
	"getpid",
	"getppid",
	"getrandom",
	"getrlimit",
	"getrusage",
	"gettid",
	"gettimeofday",
	"getuid",
	"membarrier",
	"nanosleep",
	"prlimit64",
	"restart_syscall",
	"rseq",
	"rt_sigaction",
	"rt_sigpending",
	"rt_sigprocmask",
	"rt_sigreturn",
	"rt_sigtimedwait",
	"sched_getaffinity",
	"sched_yield",
	"set_robust_list",
	"sigaltstack",
	"sysinfo",
	"tgkill",
	"time",
	"uname",
};

static int allow_unix_sockets(scmp_filter_ctx ctx)
{
	return allow_list_when(ctx, SCMP_SYS(socket), SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0));
}

int server_filter_apply(struct err *e)
{
	return allow_list_apply(allowed, ARRAY_LEN(allowed), allow_unix_sockets, e);
}
