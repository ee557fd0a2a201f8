/*
 * egress/confine.c - rights, limits, files and system calls, in that order.
 *
 * What stays: sockets of the Internet, the descriptors that it is given, and reading a few files.
 * No netlink socket can be made: those of the sandboxes come from outside, and the host's own rules
 * cannot be reached.
 */
#include "egress/confine.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "egress/options.h"
#include "egress/settings.h"
#include "sys/allow_list.h"
#include "sys/caps.h"
#include "sys/landlock.h"
#include "sys/protect.h"

#define CAP_NET_ADMIN_BIT 12
#define FDS_WANTED	  (1 << 18) /* several for each sandbox */

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
	"bind",
	"connect",
	"epoll_create1",
	"epoll_ctl",
	"epoll_pwait",
	"epoll_wait",
	"eventfd2",
	"getpeername",
	"getsockname",
	"getsockopt",
	"listen",
	"pipe2",
	"recvfrom",
	"recvmmsg",
	"recvmsg",
	"sendfile",
	"sendmmsg",
	"sendmsg",
	"sendto",
	"shutdown",
	"splice",
	/* files: the operator's lists, the policy, documents in memory, certificates */
	"access",
	"dup",
	"faccessat",
	"faccessat2",
	"fchmod",
	"fdatasync",
	"fstatfs",
	"fsync",
	"ftruncate",
	"getcwd",
	"getdents64",
	"inotify_add_watch",
	"inotify_init1",
	"inotify_rm_watch",
	"lstat",
	"memfd_create",
	"newfstatat",
	"open",
	"openat",
	"pread64",
	"pwrite64",
	"readlink",
	"readlinkat",
	"rename",
	"renameat",
	"renameat2",
	"stat",
	"statx",
	"unlink",
	"unlinkat",
	/* memory */
	"membarrier",
	"sched_getaffinity",
#ifdef SANITIZED
	/* The leak check at the end traces us from another process. */
	"clone",
	"getdents",
	"prctl",
	"ptrace",
	"wait4",
#endif
};

static const int families[] = {AF_INET, AF_INET6};

static const unsigned long ioctls[] = {FIONREAD, FIONBIO, TIOCOUTQ, TCGETS};

/* Of the options of any socket of the Internet, those from 64 on change the host's own rules
 * (iptables), for whoever has CAP_NET_ADMIN. */
#define FIRST_OF_RULES 64

static int allow_options(scmp_filter_ctx ctx)
{
	static const int harmless[] = {SOL_SOCKET, IPPROTO_TCP, IPPROTO_UDP};
	static const int numbered[] = {IPPROTO_IP, IPPROTO_IPV6};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(harmless); i++)
		r = allow_list_when(ctx, SCMP_SYS(setsockopt),
				    SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)harmless[i], 0));
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(numbered); i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(setsockopt), 2,
				     SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)numbered[i], 0),
				     SCMP_A2(SCMP_CMP_LT, FIRST_OF_RULES, 0));
	return r;
}

static int allow_some(scmp_filter_ctx ctx)
{
	int r = allow_list_when(ctx, SCMP_SYS(socketpair), SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0));

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(families); i++)
		r = allow_list_when(ctx, SCMP_SYS(socket),
				    SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i], 0));
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(ioctls); i++)
		r = allow_list_when(ctx, SCMP_SYS(ioctl), SCMP_A1(SCMP_CMP_EQ, ioctls[i], 0));
	if (r == 0)
		r = allow_options(ctx);
	/* Limits may be read, not set; signals go to ourselves. */
	if (r == 0)
		r = allow_list_when(ctx, SCMP_SYS(prlimit64), SCMP_A2(SCMP_CMP_EQ, 0, 0));
	if (r == 0)
		r = allow_list_when(ctx, SCMP_SYS(tgkill),
				    SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
	return r;
}

/* Becomes the directory above, or "". */
static void climb(char *path)
{
	char *slash = strrchr(path, '/');

	*(slash ? slash : path) = '\0';
}

/* Where a file is or will be; "" if there is no path. */
static void directory_of(const char *path, char ret[PATH_MAX])
{
	snprintf(ret, PATH_MAX, "%s", path);
	climb(ret);
	if (path[0] && !ret[0])
		snprintf(ret, PATH_MAX, "%s", path[0] == '/' ? "/" : ".");
}

static const char *or_null(const char *path)
{
	return path[0] ? path : NULL;
}

static int keep_to(const struct settings *s, const char *rules, const char *policy,
		   const char *decisions, struct err *e)
{
	const struct landlock_place places[] = {
		{or_null(rules), -1, LANDLOCK_READ},
		{or_null(policy), -1, LANDLOCK_WRITE},
		{or_null(decisions), -1, LANDLOCK_WRITE},
		{"/etc", -1, LANDLOCK_READ},
		/* Often a link to elsewhere. */
		{"/etc/resolv.conf", -1, LANDLOCK_READ},
		{"/run/systemd/resolve", -1, LANDLOCK_READ},
		{"/usr/lib/ssl", -1, LANDLOCK_READ},
		{"/usr/share/ca-certificates", -1, LANDLOCK_READ},
		{"/usr/local/share/ca-certificates", -1, LANDLOCK_READ},
		{"/dev/urandom", -1, LANDLOCK_READ},
		{or_null(s->mitmproxy_upstream_trust_dir), -1, LANDLOCK_READ},
		{getenv("SSL_CERT_FILE"), -1, LANDLOCK_READ},
		{getenv("SSL_CERT_DIR"), -1, LANDLOCK_READ},
#ifdef SANITIZED
		{"/proc", -1, LANDLOCK_READ}, /* for the leak check */
#endif
	};

	return landlock_confine(places, ARRAY_LEN(places), e);
}

/* Lists may be made later: then where they will be is what may be read. */
static int keep_to_files(const struct settings *s, struct err *e)
{
	char rules[PATH_MAX], policy[PATH_MAX], decisions[PATH_MAX];

	snprintf(rules, sizeof(rules), "%s", s->rules_dir);
	while (rules[0] && access(rules, F_OK) < 0)
		climb(rules);
	directory_of(s->policy_file, policy);
	directory_of(s->decisions_file, decisions);
	return keep_to(s, rules, policy, decisions, e);
}

static int become(const struct options *o, struct err *e)
{
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "keep capabilities: %m");
	if (setgroups(0, NULL) < 0 || setresgid(o->gid, o->gid, o->gid) < 0)
		return err_set(e, -errno, "become group %u: %m", o->gid);
	if (setresuid(o->uid, o->uid, o->uid) < 0)
		return err_set(e, -errno, "become user %u: %m", o->uid);
	/* For a moment: without them the bounding set cannot be emptied. */
	return caps_raise_effective(e);
}

static void allow_descriptors(void)
{
	struct rlimit l = {FDS_WANTED, FDS_WANTED};

	if (setrlimit(RLIMIT_NOFILE, &l) == 0 || getrlimit(RLIMIT_NOFILE, &l) < 0)
		return;
	l.rlim_cur = l.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &l);
}

int confine(const struct options *o, const struct settings *s, struct err *e)
{
	static const struct rlimit none;
	int r = 0;

	allow_descriptors();
	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return err_set(e, -errno, "forbid core files: %m");
	if (o->change_user)
		r = become(o, e);
	if (r == 0)
		r = caps_keep_at_most(UINT64_C(1) << CAP_NET_ADMIN_BIT, e);
	if (r < 0)
		return r;
	protect_from_tracing();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "forbid new privileges: %m");
	r = keep_to_files(s, e);
	return r < 0 ? r : allow_list_apply(allowed, ARRAY_LEN(allowed), allow_some, e);
}
