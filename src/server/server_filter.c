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
	"close_range",
	"dup",
	"dup2",
	"dup3",
	"faccessat",
	"faccessat2",
	"fallocate",
	"fchmod",
	"fdatasync",
	"flock",
	"fstatfs",
	"fsync",
	"ftruncate",
	"getcwd",
	"getdents64",
	"ioctl",
	"lstat",
	"memfd_create",
	"newfstatat",
	"open",
	"openat",
	"pread64",
	"preadv",
	"pwrite64",
	"pwritev",
	"readlink",
	"readlinkat",
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
	/* memory */
	"mincore",
	"mlock",
	"msync",
	/* time, signals, who we are */
	"get_robust_list",
	"membarrier",
	"prlimit64",
	"rt_sigpending",
	"rt_sigtimedwait",
	"sched_getaffinity",
	"tgkill",
};

static int allow_unix_sockets(scmp_filter_ctx ctx)
{
	return allow_list_when(ctx, SCMP_SYS(socket), SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0));
}

int server_filter_apply(struct err *e)
{
	return allow_list_apply(allowed, ARRAY_LEN(allowed), allow_unix_sockets, e);
}
