/*
 * ingress/confine.c - user, rights, files and system calls, in that order.
 */
#include "ingress/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "codec/passwd.h"
#include "sys/allow_list.h"
#include "sys/caps.h"
#include "sys/landlock.h"
#include "sys/protect.h"

#define PASSWD_MAX (1 << 20)

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

static const char *const allowed[] = {
	/* connections */
	"accept4",
	"connect",
	"epoll_create1",
	"epoll_ctl",
	"epoll_pwait",
	"epoll_wait",
	"eventfd2",
	"getpeername",
	"getsockname",
	"getsockopt",
	"ioctl",
	"pipe2",
	"recvfrom",
	"recvmsg",
	"sendmsg",
	"sendto",
	"setsockopt",
	"shutdown",
	"splice",
	/* descriptors; files are out of reach by then */
	"newfstatat",
	"open",
	"openat",
	"pread64",
#ifdef SANITIZED
	/* The leak check at the end traces us from another process. */
	"clone",
	"getdents",
	"getdents64",
	"prctl",
	"ptrace",
	"readlink",
	"readlinkat",
	"sched_getaffinity",
	"stat",
	"wait4",
#endif
};

static int allow_sockets(scmp_filter_ctx ctx)
{
	static const int families[] = {AF_INET, AF_INET6};
	int r = allow_list_when(ctx, SCMP_SYS(socketpair), SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0));

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(families); i++)
		r = allow_list_when(ctx, SCMP_SYS(socket),
				    SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i], 0));
	/* Limits may be read, not set; signals go to ourselves. */
	if (r == 0)
		r = allow_list_when(ctx, SCMP_SYS(prlimit64), SCMP_A2(SCMP_CMP_EQ, 0, 0));
	if (r == 0)
		r = allow_list_when(ctx, SCMP_SYS(tgkill),
				    SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
	return r;
}

static int find_user(const char *name, struct passwd_user *ret, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(PASSWD_MAX);
	osb_cleanup(fd_closep) int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	char *room = buf_reserve(&text, PASSWD_MAX);
	ssize_t n = fd < 0 || !room ? -1 : read(fd, room, PASSWD_MAX);

	if (n < 0)
		return err_set(e, -errno, "read /etc/passwd: %m");
	buf_commit(&text, (size_t)n);
	if (!passwd_user_by_name(buf_view(&text), view_of(name), ret))
		return err_set(e, -ENOENT, "--user: /etc/passwd has no user '%s'", name);
	if (ret->uid == 0 || ret->gid == 0)
		return err_set(e, -EINVAL, "--user: '%s' must be an ordinary user", name);
	return 0;
}

static int become(const char *name, struct err *e)
{
	struct passwd_user user;
	int r = find_user(name, &user, e);

	if (r < 0)
		return r;
	/* Capabilities stay for a moment: without one the bounding set cannot be emptied. */
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 ||
	    setresgid(user.gid, user.gid, user.gid) < 0 ||
	    setresuid(user.uid, user.uid, user.uid) < 0)
		return err_set(e, -errno, "become user '%s': %m", name);
	r = caps_raise_effective(e);
	return r < 0 ? r : caps_keep_only(0, e);
}

/* A sanitizer's leak check looks at our own threads in the end, and may. */
static int lose_sight_of_files(struct err *e)
{
#ifdef SANITIZED
	static const struct landlock_place proc = {"/proc", -1, LANDLOCK_READ};

	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	return landlock_confine(&proc, 1, e);
#else
	return landlock_confine(NULL, 0, e);
#endif
}

int confine(const char *user, struct err *e)
{
	static const struct rlimit none;
	struct rlimit before;
	int r = 0;

	protect_raise_nofile(&before);
	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return err_set(e, -errno, "forbid core files: %m");
	if (geteuid() == 0)
		r = become(user, e);
	if (r == 0)
		r = caps_drop_all(e);
	if (r < 0)
		return r;
	protect_from_tracing();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "forbid new privileges: %m");
	r = lose_sight_of_files(e);
	return r < 0 ? r : allow_list_apply(allowed, ARRAY_LEN(allowed), allow_sockets, e);
}
